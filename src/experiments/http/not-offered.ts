import { ApiError } from "../../platform/errors.ts";
import type { App } from "../../platform/http/route.ts";

interface Feature {
  /** The beginning of the sentence "{feature} is not supported." */
  feature: string;
  instead: string;
  /** Paths without the prefix. Other paths of the feature get the error for unknown routes. */
  paths: readonly string[];
}

const EVALUATORS = {
  feature: "Evaluation by the server (online evaluators and rules)",
  instead: "Score runs with evaluate(), or score them in your own code and send the scores with create_feedback.",
};

/** Features of the official clients that this service does not have. Their routes respond with 404 and an explanation. */
const NOT_OFFERED: Record<keyof typeof PREFIXES, readonly Feature[]> = {
  any_base: [
    {
      feature: "Similarity search over the examples of a dataset",
      instead: "Compute embeddings of the examples with your own model.",
      paths: ["/datasets/:dataset_id/index", "/datasets/:dataset_id/index/sync", "/datasets/:dataset_id/search"],
    },
    {
      feature: "Model-based analysis of traces (insights)",
      instead: "Query the runs, and analyze them with your own model.",
      paths: [
        "/sessions/:session_id/insights",
        "/sessions/:session_id/insights/:job_id",
        // Before it requests insights, the Python client looks for a model's API key at this path.
        "/workspaces/current/secrets",
      ],
    },
  ],
  v1: [
    {
      feature: "The session dashboard API",
      instead: "To get the statistics of a session, request the session with include_stats=true.",
      paths: ["/sessions/:session_id/dashboard"],
    },
    {
      feature: "The agents API",
      instead:
        "Use the assistants of the agent server (/assistants) or the deployments of the control plane (/v2/deployments).",
      paths: ["/agents", "/agents/:agent_id"],
    },
    {
      feature: "CSV export of an annotation queue",
      instead: "List the completed runs of the queue and their feedback.",
      paths: ["/annotation-queues/:queue_id/export"],
    },
    { ...EVALUATORS, paths: ["/runs/rules", "/runs/rules/decision-models"] },
    {
      feature: "The session resolutions API",
      instead: "Find the session by name with /api/v1/sessions?name={name}.",
      paths: ["/sessions/resolutions"],
    },
  ],
  platform: [
    {
      feature: "Storage for files of agents and skills",
      instead: "Keep the files in a Git repository.",
      paths: ["/hub/repos/:owner/:repo/directories", "/hub/repos/:owner/:repo/directories/commits"],
    },
    { ...EVALUATORS, paths: ["/evaluators", "/evaluators/spend", "/evaluators/:evaluator_id"] },
    {
      feature: "Detection of issues in traces",
      instead: "Query the runs with a filter, for example on errors or feedback.",
      paths: ["/issues", "/issues/:issue_id"],
    },
  ],
  v2: [
    {
      feature: "Version 2 of the sessions API",
      instead: "Use /api/v1/sessions.",
      paths: ["/sessions", "/sessions/:session_id"],
    },
    {
      feature: "Version 2 of the traces API",
      instead: "Query the runs with /api/v2/runs/query, and filter them by is_root or trace_id.",
      paths: ["/traces/query", "/traces/:trace_id/runs"],
    },
    {
      feature: "The run URL API",
      instead: "Read the run instead. Its field app_path contains the path of the run's page in the web app.",
      paths: ["/runs/:run_id/url"],
    },
    {
      feature: "The API for sharing threads and for statistics of all threads",
      instead: "Read the statistics of the runs with /api/v1/runs/stats, and share individual runs.",
      paths: ["/threads/stats", "/threads/:thread_id/share"],
    },
    { ...EVALUATORS, paths: ["/runs/rules"] },
    {
      feature: "The sandboxes API",
      instead: "Run code in your own containers, or deploy an agent.",
      paths: ["/sandboxes/*"],
    },
  ],
};

const PREFIXES = {
  any_base: ["/api/v1", ""],
  v1: ["/api/v1"],
  platform: ["/api/v1/platform", "/v1/platform"],
  v2: ["/api/v2"],
};

/** Must be called before the routes of the experiments are added, because `/runs/{run_id}` also matches `/runs/rules`. */
export function refuseNotOffered(app: App): void {
  for (const version of ["any_base", "v1", "platform", "v2"] as const)
    for (const { feature, instead, paths } of NOT_OFFERED[version])
      for (const path of paths)
        for (const prefix of PREFIXES[version])
          app.all(`${prefix}${path}`, () => {
            throw new ApiError("not_offered", { feature, instead });
          });
}
