import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { experimentRoutes } from "../../src/experiments/contract/routes.ts";
import { tracePageRoutes } from "../../src/experiments/contract/traces/app-traces.ts";
import { pricePageRoutes } from "../../src/experiments/contract/traces/prices.ts";
import { experimentRoutesV2 } from "../../src/experiments/contract/v2/routes.ts";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { partsOf, run, TraceClient } from "./trace-client.ts";

const SECRET = "secret of the workspace";

interface Call {
  /** The status for a caller of another workspace. */
  status: number;
  query?: string;
  body?: object;
}

/** Calls with the ids of another workspace, by route. A new route fails until it is here. */
const callsOf = (ids: Record<string, string>): Record<string, Call> => {
  const { run_id, session_id } = ids;
  const [session, project] = [{ session: [session_id] }, `project_id=${session_id}`];
  return {
    "post /api/v1/runs": { status: 400, body: { ...run(), session_id } },
    "post /api/v1/runs/batch": { status: 400, body: { post: [{ ...run(), session_id }] } },
    "post /api/v1/runs/multipart": { status: 400 },
    "post /api/v1/otel/v1/traces": { status: 200, body: { resourceSpans: [] } },
    "post /api/v1/runs/query": { status: 200, body: session },
    "get /api/v1/runs/{run_id}": { status: 404 },
    "post /api/v1/runs/stats": { status: 200, body: session },
    "post /api/v1/runs/group": { status: 404, body: { session_id, group_by: "conversation" } },
    "get /api/v1/runs/{run_id}/share": { status: 404 },
    "put /api/v1/runs/{run_id}/share": { status: 404, body: { run_id, share_token: randomUUID() } },
    "delete /api/v1/runs/{run_id}/share": { status: 404 },
    "get /api/v1/model-price-map": { status: 200 },
    "post /api/v1/model-price-map": {
      status: 200,
      body: { name: "own", match_pattern: "^own$", prompt_cost: 0, completion_cost: 0 },
    },
    "put /api/v1/model-price-map/{price_id}": {
      status: 404,
      body: { name: "other", match_pattern: "^other$", prompt_cost: 0, completion_cost: 0 },
    },
    "delete /api/v1/model-price-map/{price_id}": { status: 404 },
    "post /app/api/reprice": { status: 404, body: { session_id } },
    "get /app/api/traces/{trace_id}": { status: 404 },
    "post /app/api/traces/query": { status: 404, body: { session_id } },
    "post /app/api/traces/usage": {
      status: 200,
      body: { from: "2026-01-31T00:00:00Z", until: "2026-02-01T00:00:00Z", bucket_ms: 3_600_000 },
    },
    "post /api/v1/feedback": { status: 404, body: { session_id, key: "k", score: 1 } },
    "get /api/v1/feedback": { status: 200, query: `run=${run_id}` },
    "get /api/v1/feedback/{feedback_id}": { status: 404 },
    "patch /api/v1/feedback/{feedback_id}": { status: 404, body: { score: 0 } },
    "delete /api/v1/feedback/{feedback_id}": { status: 404 },
    // The run of a token may arrive later: the token is for the run of the caller's workspace.
    "post /api/v1/feedback/tokens": { status: 200, body: { run_id, feedback_key: "k" } },
    "get /api/v1/feedback/tokens": { status: 200, query: `run_id=${run_id}` },
    "get /api/v1/sessions": { status: 200 },
    "post /api/v1/sessions": { status: 200, body: { name: SECRET.slice(0, 6) } },
    "get /api/v1/sessions/{session_id}": { status: 404 },
    "patch /api/v1/sessions/{session_id}": { status: 404, body: { name: "other" } },
    "delete /api/v1/sessions/{session_id}": { status: 404 },
    "post /api/v2/runs/query": { status: 404, body: { project_ids: [session_id], selects: ["ID", "INPUTS"] } },
    "get /api/v2/runs/{run_id}": { status: 404, query: `${project}&selects=INPUTS` },
    "post /api/v2/runs/{run_id}/share": { status: 404 },
    "delete /api/v2/runs/{run_id}/share": { status: 404 },
    "post /api/v2/threads/query": { status: 404, body: { project_id: session_id } },
    "get /api/v2/threads/{thread_id}/traces": { status: 404, query: project },
    "get /api/v2/threads/{thread_id}/stats": { status: 404, query: `session_id=${session_id}&selects=TURNS` },
    // Last, because it stores a run with this id in the workspace of the caller.
    "patch /api/v1/runs/{run_id}": { status: 202, body: { name: "other" } },
  };
};

interface Route {
  method: string;
  path: string;
}

const routesOf = (prefix: string, ...groups: object[]): string[] =>
  groups
    .flatMap((group) => Object.values(group) as Route[])
    .map(({ method, path }) => `${method} ${prefix}${path}`)
    // Tokens of shares and of feedback replace the key.
    .filter((route) => !/\/(public|feedback\/tokens)\/\{/.test(route));

const { Traces, Runs, Feedback, Experiments } = experimentRoutes;
const ROUTES = [
  ...routesOf("/api/v1", Traces, Runs, Feedback, Experiments).filter((route) => !/config|upload/.test(route)),
  ...routesOf("", tracePageRoutes, pricePageRoutes),
  ...routesOf("/api/v2", experimentRoutesV2).filter((route) => !route.includes("/datasets")),
];

describe.each(databases)("every route of traces, on %s", (database) => {
  let api: Scenario;
  let own: TraceClient;
  let stranger: TraceClient;
  let ids: Record<string, string>;
  beforeAll(async () => {
    api = await closedService(database);
    own = new TraceClient(api.service, await newCaller(api, { tenant_id: await newWorkspace(api) }));
    stranger = new TraceClient(api.service, await newCaller(api, { tenant_id: await newWorkspace(api) }));
    const thread_id = randomUUID();
    const traced = run({ name: SECRET, inputs: { SECRET }, session_name: SECRET, extra: { metadata: { thread_id } } });
    const feedback_id = randomUUID();
    const feedback = { [`feedback.${feedback_id}`]: { run_id: traced.id, key: "k", score: 1, comment: SECRET } };
    expect((await own.sendParts({ ...partsOf("post", [traced]), ...feedback })).status).toBe(202);
    const price = { name: SECRET, match_pattern: "x", prompt_cost: 1, completion_cost: 1 };
    const { session_id = "" } = await own.read(traced.id);
    const { id: price_id = "" } = (await own.json("POST", "/api/v1/model-price-map", price)).body;
    ids = { run_id: traced.id, trace_id: traced.id, session_id, feedback_id, price_id, thread_id };
  });
  afterAll(() => api.stop());

  it("is in this test", () => {
    expect(ROUTES.length).toBeGreaterThan(30);
    expect(Object.keys(callsOf(ids)).sort()).toEqual(ROUTES.toSorted());
  });

  it("shows and changes nothing of another workspace", async () => {
    const before = await own.read(ids.run_id as string);
    const wrong: [route: string, status: number][] = [];
    for (const [route, { status, query, body }] of Object.entries(callsOf(ids))) {
      const [method = "", template = ""] = route.split(" ");
      const path = template.replaceAll(/\{(\w+)\}/g, (_, name) => ids[name] as string);
      const answer = await stranger.send(
        method.toUpperCase(),
        query === undefined ? path : `${path}?${query}`,
        (method === "get" ? undefined : JSON.stringify(body ?? {})) as string,
        { "content-type": "application/json" },
      );
      if (answer.status !== status) wrong.push([route, answer.status]);
      expect([route, Buffer.from(answer.bytes).toString()]).not.toEqual([route, expect.stringContaining(SECRET)]);
    }
    expect(wrong).toEqual([]);
    expect(await own.read(ids.run_id as string)).toEqual(before);
    expect((await own.get(`/feedback/${ids.feedback_id}`)).body).toMatchObject({ score: 1, comment: SECRET });
    expect((await own.get("/model-price-map")).body).toMatchObject([{ id: ids.price_id, name: SECRET }]);
  });
});
