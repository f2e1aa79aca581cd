import * as comparison from "./comparison.ts";
import * as datasets from "./datasets.ts";
import * as examples from "./examples.ts";
import * as feedback from "./feedback.ts";
import * as configs from "./feedback-configs.ts";
import * as runs from "./runs.ts";
import * as sessions from "./sessions.ts";
import * as shared from "./shared-datasets.ts";
import * as system from "./system.ts";
import * as traces from "./traces.ts";
import * as upload from "./upload.ts";
import * as v2 from "./v2.ts";

/** The routes of the experiments API, below `/api/v1` and at the root. The comments repeat the method and path of each route. */
export const experimentRoutes = {
  uploads: {
    uploadExperiment: upload.uploadExperiment, // POST /datasets/upload-experiment
  },
  comparative: {
    createComparative: comparison.createComparative, // POST /datasets/comparative
    deleteComparative: comparison.deleteComparative, // DELETE /datasets/comparative/{comparative_experiment_id}
    listComparative: comparison.listComparative, // GET /datasets/{dataset_id}/comparative
  },
  datasets: {
    listDatasets: datasets.listDatasets, // GET /datasets
    createDataset: datasets.createDataset, // POST /datasets
    readDataset: datasets.readDataset, // GET /datasets/{dataset_id}
    updateDataset: datasets.updateDataset, // PATCH /datasets/{dataset_id}
    deleteDataset: datasets.deleteDataset, // DELETE /datasets/{dataset_id}
    listDatasetVersions: datasets.listDatasetVersions, // GET /datasets/{dataset_id}/versions
    readDatasetShare: datasets.readDatasetShare, // GET /datasets/{dataset_id}/share
    shareDataset: datasets.shareDataset, // PUT /datasets/{dataset_id}/share
    unshareDataset: datasets.unshareDataset, // DELETE /datasets/{dataset_id}/share
  },
  shared: {
    readSharedDataset: shared.readSharedDataset, // GET /public/{share_token}/datasets
    listSharedExamples: shared.listSharedExamples, // GET /public/{share_token}/examples
    listSharedSessions: shared.listSharedSessions, // GET /public/{share_token}/datasets/sessions
  },
  examples: {
    listExamples: examples.listExamples, // GET /examples
    createExample: examples.createExample, // POST /examples
    createExamples: examples.createExamples, // POST /examples/bulk
    deleteExamples: examples.deleteExamples, // DELETE /examples
    countExamples: examples.countExamples, // GET /examples/count
    readExample: examples.readExample, // GET /examples/{example_id}
    updateExample: examples.updateExample, // PATCH /examples/{example_id}
    deleteExample: examples.deleteExample, // DELETE /examples/{example_id}
    uploadExamples: examples.uploadExamples, // POST /platform/datasets/{dataset_id}/examples
    patchExamples: examples.patchExamples, // PATCH /platform/datasets/{dataset_id}/examples
  },
  sessions: {
    listSessions: sessions.listSessions, // GET /sessions
    createSession: sessions.createSession, // POST /sessions
    readSession: sessions.readSession, // GET /sessions/{session_id}
    updateSession: sessions.updateSession, // PATCH /sessions/{session_id}
    deleteSession: sessions.deleteSession, // DELETE /sessions/{session_id}
  },
  traces: {
    createRun: traces.createRun, // POST /runs
    ingestBatch: traces.ingestBatch, // POST /runs/batch
    ingestMultipart: traces.ingestMultipart, // POST /runs/multipart
    updateRun: traces.updateRun, // PATCH /runs/{run_id}
    ingestSpans: traces.ingestSpans, // POST /otel/v1/traces
  },
  runs: {
    queryRuns: runs.queryRuns, // POST /runs/query
    readRunStats: runs.readRunStats, // POST /runs/stats
    readRun: runs.readRun, // GET /runs/{run_id}
  },
  comparison: {
    readExamplesWithRuns: comparison.readExamplesWithRuns, // POST /datasets/{dataset_id}/runs
    readDelta: comparison.readDelta, // POST /datasets/{dataset_id}/runs/delta
    streamDelta: comparison.streamDelta, // POST /datasets/{dataset_id}/runs/delta/stream
    compareExperiments: comparison.compareExperiments, // POST /datasets/{dataset_id}/compare
  },
  feedback: {
    createFeedback: feedback.createFeedback, // POST /feedback
    listFeedback: feedback.listFeedback, // GET /feedback
    readFeedback: feedback.readFeedback, // GET /feedback/{feedback_id}
    updateFeedback: feedback.updateFeedback, // PATCH /feedback/{feedback_id}
    deleteFeedback: feedback.deleteFeedback, // DELETE /feedback/{feedback_id}
    listFeedbackConfigs: configs.listFeedbackConfigs, // GET /feedback-configs
    createFeedbackConfig: configs.createFeedbackConfig, // POST /feedback-configs
    updateFeedbackConfig: configs.updateFeedbackConfig, // PATCH /feedback-configs
    deleteFeedbackConfig: configs.deleteFeedbackConfig, // DELETE /feedback-configs
  },
  system: {
    experimentsInfo: system.experimentsInfo, // GET /info
  },
} as const;

/** Version 2, below `/api/v2` and `/v2`. Errors are RFC 7807 problem details. */
export const experimentRoutesV2 = {
  queryRunsV2: v2.queryRunsV2, // POST /runs/query
  readRunV2: v2.readRunV2, // GET /runs/{run_id}
  queryExperimentRuns: v2.queryExperimentRuns, // POST /datasets/{dataset_id}/experiment-runs
} as const;

/** The tags of the routes in the OpenAPI document. */
export const EXPERIMENT_TAGS: Record<keyof typeof experimentRoutes, string> = {
  uploads: "Experiments",
  comparative: "Comparison",
  datasets: "Datasets",
  shared: "Datasets",
  examples: "Examples",
  sessions: "Experiments",
  traces: "Traces",
  runs: "Runs",
  comparison: "Comparison",
  feedback: "Feedback",
  system: "System",
};

export const experimentsDocument = {
  openapi: "3.1.0",
  info: {
    title: "Threadmill experiments",
    version: "0.1.0",
    description:
      "Upload, query and compare the results of experiments. A 422 response lists every reason with its location; other " +
      "errors have the body `{detail}`. Unknown fields and query parameters are ignored.",
  },
  tags: [
    { name: "Experiments", description: "Experiments and their statistics. The API calls an experiment a session." },
    { name: "Datasets", description: "Sets of examples." },
    { name: "Examples", description: "Inputs and expected outputs." },
    { name: "Traces", description: "The ingestion of runs." },
    { name: "Runs", description: "Runs of traces, and executions of an experiment on one example." },
    { name: "Feedback", description: "Scores and comments on runs and experiments." },
    { name: "Comparison", description: "Comparison of experiments." },
    { name: "Version 2", description: "Version 2 of the runs API." },
    { name: "System", description: "Information about the server." },
  ],
};
