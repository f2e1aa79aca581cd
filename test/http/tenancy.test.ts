import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { documented } from "../experiments/experiment.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { ADMIN, closedService, newCaller, newWorkspace } from "./callers.ts";
import type { Scenario, Wire } from "./scenario.ts";

type Headers = Record<string, string>;

/** Ids of one workspace. */
interface Belongings {
  headers: Headers;
  thread: string;
  run: string;
  checkpoint: string;
  assistant: string;
  dataset: string;
  example: string;
  session: string;
  experimentRun: string;
  feedback: string;
  comparative: string;
}

describe.each(databases)("two workspaces on %s", (database) => {
  let api: Scenario;
  let tenant: string;
  let own: Belongings;
  let stranger: Headers;
  let before: Wire;
  beforeAll(async () => {
    api = await closedService(database);
    tenant = await newWorkspace(api);
    own = await fill(await newCaller(api, { tenant_id: tenant, user_id: "eve" }));
    // The same user: what counts is the workspace.
    stranger = await newCaller(api, { tenant_id: await newWorkspace(api), user_id: "eve" });
    before = await snapshot();
  });
  afterAll(() => api.stop());

  const fill = async (headers: Headers): Promise<Belongings> => {
    const call = (method: "GET" | "POST", path: string, body?: unknown): Promise<Wire> =>
      api.call(method, path, body, headers);
    const thread = (await call("POST", "/threads", {})).thread_id;
    // The name does not resolve, so the webhook remains pending.
    const chain = { assistant_id: "chain", input: { steps: [] }, webhook: "https://hooks.invalid" };
    await call("POST", `/threads/${thread}/runs/wait`, chain);
    const [run] = await call("GET", `/threads/${thread}/runs`);
    const { checkpoint } = await call("GET", `/threads/${thread}/state`);
    const assistant = (await call("POST", "/assistants", { graph_id: "chain" })).assistant_id;
    const { dataset, experiment } = await call("POST", "/api/v1/datasets/upload-experiment", documented());
    const [example] = await call("GET", `/api/v1/examples?dataset=${dataset.id}`);
    const { runs } = await call("POST", "/api/v1/runs/query", { session: [experiment.id] });
    const [feedback] = await call("GET", `/api/v1/feedback?run=${runs[0].id}`);
    const another = await call("POST", "/api/v1/datasets/upload-experiment", {
      ...documented(),
      dataset_name: undefined,
      dataset_id: dataset.id,
    });
    const comparative = await call("POST", "/api/v1/datasets/comparative", {
      experiment_ids: [experiment.id, another.experiment.id],
    });
    return {
      headers,
      thread,
      run: run.run_id,
      checkpoint: checkpoint.checkpoint_id,
      assistant,
      dataset: dataset.id,
      example: example.id,
      session: experiment.id,
      experimentRun: runs[0].id,
      feedback: feedback.id,
      comparative: comparative.id,
    };
  };

  const snapshot = () =>
    Promise.all(
      [
        ...["/threads/{thread}", "/threads/{thread}/runs", "/threads/{thread}/state", "/assistants/{assistant}"],
        ...["/datasets/{dataset}", "/datasets/{dataset}/comparative", "/examples/{example}"].map(
          (path) => `/api/v1${path}`,
        ),
        ...["/sessions", "/runs/{experimentRun}", "/feedback"].map((path) => `/api/v1${path}`),
      ].map((path) => api.call("GET", filled(path), undefined, own.headers)),
    );

  /** Requests that name something by its id, with the least that they need to be understood. */
  const REQUESTS: [method: string, path: string, body?: object][] = [
    ["GET", "/threads/{thread}"],
    ["PATCH", "/threads/{thread}", { metadata: { a: 1 } }],
    ["DELETE", "/threads/{thread}"],
    ["GET", "/threads/{thread}/stream"],
    ["GET", "/threads/{thread}/state"],
    ["GET", "/threads/{thread}/state/{checkpoint}"],
    ["POST", "/threads/{thread}/state/checkpoint", { checkpoint: {} }],
    ["POST", "/threads/{thread}/state", { values: { steps: ["x"] } }],
    ["GET", "/threads/{thread}/history"],
    ["POST", "/threads/{thread}/history", {}],
    ["POST", "/threads/{thread}/runs", { assistant_id: "chain" }],
    ["POST", "/threads/{thread}/runs", { assistant_id: "chain", if_not_exists: "create" }],
    ["POST", "/threads/{thread}/runs/stream", { assistant_id: "chain" }],
    ["POST", "/threads/{thread}/runs/wait", { assistant_id: "chain" }],
    ["GET", "/threads/{thread}/runs"],
    ["GET", "/threads/{thread}/runs/{run}"],
    ["DELETE", "/threads/{thread}/runs/{run}"],
    ["GET", "/threads/{thread}/runs/{run}/join"],
    ["GET", "/threads/{thread}/runs/{run}/stream"],
    ["POST", "/threads/{thread}/runs/{run}/cancel", {}],
    ["POST", "/runs/cancel", { thread_id: "{thread}", run_ids: ["{run}"] }],
    ["GET", "/runs/{run}/join"],
    ["GET", "/runs/{run}/stream"],
    ["POST", "/runs/wait", { assistant_id: "{assistant}" }],
    ["POST", "/webhooks/deliveries/{run}/redeliver"],
    ["GET", "/assistants/{assistant}"],
    ["PATCH", "/assistants/{assistant}", { name: "mine" }],
    ["DELETE", "/assistants/{assistant}"],
    ["GET", "/assistants/{assistant}/graph"],
    ["GET", "/assistants/{assistant}/schemas"],
    ["GET", "/assistants/{assistant}/subgraphs"],
    ["POST", "/assistants/{assistant}/versions", {}],
    ["POST", "/assistants/{assistant}/latest", { version: 1 }],
    ["GET", "/api/v1/datasets/{dataset}"],
    ["PATCH", "/api/v1/datasets/{dataset}", { name: "mine" }],
    ["DELETE", "/api/v1/datasets/{dataset}"],
    ["GET", "/api/v1/datasets/{dataset}/versions"],
    ["GET", "/api/v1/datasets/{dataset}/versions/diff?from_version=latest&to_version=latest"],
    ["GET", "/api/v1/datasets/{dataset}/version?tag=latest"],
    ["GET", "/api/v1/datasets/{dataset}/tags"],
    ["PUT", "/api/v1/datasets/{dataset}/tags", { tag: "mine", as_of: "latest" }],
    ["GET", "/api/v1/datasets/{dataset}/splits"],
    ["PUT", "/api/v1/datasets/{dataset}/splits", { split_name: "mine", examples: ["{example}"] }],
    ["GET", "/api/v1/datasets/{dataset}/csv"],
    ["GET", "/api/v1/datasets/{dataset}/jsonl"],
    ["GET", "/api/v1/datasets/{dataset}/share"],
    ["PUT", "/api/v1/datasets/{dataset}/share"],
    ["DELETE", "/api/v1/datasets/{dataset}/share"],
    ["GET", "/api/v1/datasets/{dataset}/comparative"],
    ["POST", "/api/v1/datasets/{dataset}/runs", { session_ids: ["{session}"] }],
    [
      "POST",
      "/api/v1/datasets/{dataset}/runs/delta",
      { baseline_session_id: "{session}", comparison_session_ids: ["{session}"], feedback_key: "correct" },
    ],
    [
      "POST",
      "/api/v1/datasets/{dataset}/compare",
      { baseline_session_id: "{session}", comparison_session_ids: ["{session}"] },
    ],
    ["DELETE", "/api/v1/datasets/comparative/{comparative}"],
    ["POST", "/api/v1/datasets/comparative", { experiment_ids: ["{session}"] }],
    ["GET", "/api/v1/examples/{example}"],
    ["PATCH", "/api/v1/examples/{example}", { inputs: { a: 1 } }],
    ["DELETE", "/api/v1/examples/{example}"],
    ["PATCH", "/api/v1/examples/bulk", [{ id: "{example}", inputs: { a: 1 } }]],
    ["POST", "/v1/platform/datasets/examples/delete", { example_ids: ["{example}"], hard_delete: true }],
    ["DELETE", "/v1/platform/datasets/{dataset}/examples/{example}"],
    [
      "PATCH",
      "/v1/platform/datasets/{dataset}/examples/metadata",
      { example_ids: ["{example}"], operations: [{ key: "k", operation: "SET", value: 1 }] },
    ],
    ["GET", "/api/v1/sessions/{session}"],
    ["PATCH", "/api/v1/sessions/{session}", { name: "mine" }],
    ["DELETE", "/api/v1/sessions/{session}"],
    ["POST", "/api/v1/sessions", { reference_dataset_id: "{dataset}" }],
    ["GET", "/api/v1/runs/{experimentRun}"],
    ["GET", "/runs/{experimentRun}"],
    ["GET", "/api/v2/runs/{experimentRun}?project_id={session}&start_time=2026-01-01T00:00:00Z"],
    ["POST", "/api/v2/datasets/{dataset}/experiment-runs", { experiment_ids: ["{session}"] }],
    ["GET", "/api/v1/feedback/{feedback}"],
    ["PATCH", "/api/v1/feedback/{feedback}", { score: 0 }],
    ["DELETE", "/api/v1/feedback/{feedback}"],
    ["POST", "/api/v1/feedback", { key: "k", session_id: "{session}", score: 1 }],
  ];

  const filled = (text: string) => text.replaceAll(/\{(\w+)\}/g, (_, name) => own[name as keyof Belongings] as string);

  it.each(REQUESTS)("records of the other one are not found: %s %s %j", async (method, path, body) => {
    const text = body && filled(JSON.stringify(body));
    const answer = await api.send(method as "GET", filled(path), text, stranger);
    expect([answer.status, answer.text]).toEqual([404, expect.any(String)]);
    // Its owner is answered, so it is not the request that is wrong. (The stream of a thread does not end.)
    if (method === "GET" && path !== "/threads/{thread}/stream")
      expect((await api.send("GET", filled(path), text, own.headers)).status).toBeLessThan(300);
  });

  it("none of the requests above has changed anything", async () => {
    expect(await snapshot()).toEqual(before);
  });

  it("cannot find, list or count each other's data", async () => {
    const see = async (method: "GET" | "POST", path: string, body?: object): Promise<Wire> =>
      (await api.send(method, filled(path), body && filled(JSON.stringify(body)), stranger)).body;
    expect(await see("POST", "/threads/search", {})).toEqual([]);
    expect(await see("POST", "/threads/search", { ids: ["{thread}"] })).toEqual([]);
    expect(await see("POST", "/threads/count", {})).toBe(0);
    const names = (await see("POST", "/assistants/search", { limit: 100 })).map((assistant: Wire) => assistant.name);
    expect(names).not.toContain("Untitled");
    expect(await see("GET", "/webhooks/deliveries")).toEqual([]);
    expect(await see("GET", "/webhooks/deliveries?run_id={run}")).toEqual([]);
    expect(await api.call("GET", "/webhooks/deliveries", undefined, own.headers)).toMatchObject([{ run_id: own.run }]);
    expect(await see("GET", "/api/v1/datasets")).toEqual([]);
    expect(await see("GET", "/api/v1/datasets?id={dataset}")).toEqual([]);
    expect(await see("GET", "/api/v1/sessions")).toEqual([]);
    expect(await see("GET", "/api/v1/sessions?reference_dataset={dataset}")).toEqual([]);
    expect(await see("GET", "/api/v1/feedback")).toEqual([]);
    expect(await see("GET", "/api/v1/feedback?run={experimentRun}&session={session}")).toEqual([]);
    expect(await see("GET", "/api/v1/feedback-configs")).toEqual([]);
    expect(await see("GET", "/api/v1/examples?id={example}")).toEqual([]);
    expect((await see("POST", "/api/v1/runs/query", { id: ["{experimentRun}"] })).runs).toEqual([]);
  });

  it("examples in multipart bodies, and from runs, cannot refer to records of the other", async () => {
    const mine = (await api.call("POST", "/api/v1/datasets", { name: "mine" }, stranger)).id;
    const send = async (method: string, path: string, parts: Record<string, object>) => {
      const body = new FormData();
      for (const [name, part] of Object.entries(parts)) body.append(name, new Blob([JSON.stringify(part)]));
      const url = `http://localhost/v1/platform/${path}`;
      return (await api.service.threadmill.fetch(new Request(url, { method, body, headers: stranger }))).status;
    };
    const parts = { [own.example]: {}, [`${own.example}.inputs`]: { a: 1 } };
    expect(await send("POST", `datasets/${own.dataset}/examples`, parts)).toBe(404);
    expect(await send("PATCH", `datasets/${own.dataset}/examples`, parts)).toBe(404);
    expect(await send("PATCH", `datasets/${mine}/examples`, parts)).toBe(404);
    const named = { ...parts, [own.example]: { dataset_id: own.dataset } };
    expect(await send("POST", "examples/multipart", named)).toBe(404);
    const copy = { dataset_id: mine, source_run_id: own.experimentRun, use_source_run_io: true };
    expect((await api.send("POST", "/api/v1/examples", copy, stranger)).status).toBe(404);
    await api.call("DELETE", `/api/v1/datasets/${mine}`, undefined, stranger);
    expect(await snapshot()).toEqual(before);
  });

  it("a run is read only together with its own thread", async () => {
    const elsewhere = (await api.call("POST", "/threads", {}, stranger)).thread_id;
    const path = `/threads/${elsewhere}/runs/${own.run}`;
    expect((await api.send("GET", path, undefined, stranger)).status).toBe(404);
    expect((await api.send("GET", `${path}/join`, undefined, stranger)).status).toBe(404);
  });

  it("an id of a thread that the other has taken is taken, and the thread is not shown", async () => {
    for (const if_exists of ["raise", "do_nothing"]) {
      const answer = await api.send("POST", "/threads", { thread_id: own.thread, if_exists }, stranger);
      expect([answer.status, answer.body]).toEqual([409, { detail: "Thread already exists" }]);
    }
  });

  it("both have the default assistants, each its own, under the ids that clients compute", async () => {
    const [mine, theirs] = await Promise.all(
      [stranger, own.headers].map((headers) => api.call("GET", "/assistants/chain", undefined, headers)),
    );
    expect(mine.assistant_id).toBe(theirs.assistant_id);
    await api.call("PATCH", "/assistants/chain", { config: { recursion_limit: 7 } }, stranger);
    expect((await api.call("GET", "/assistants/chain", undefined, stranger)).config).toEqual({ recursion_limit: 7 });
    expect((await api.call("GET", "/assistants/chain", undefined, own.headers)).config).toEqual({});
    const versions = await api.call("POST", "/assistants/chain/versions", {}, own.headers);
    expect(versions.length).toBe(1);
    expect((await api.send("DELETE", "/assistants/chain", undefined, stranger)).status).toBe(409);
  });

  it("both may give an assistant the same id, and deleting one leaves the other with its runs", async () => {
    const assistant_id = randomUUID();
    for (const headers of [own.headers, stranger])
      await api.call("POST", "/assistants", { assistant_id, graph_id: "slow" }, headers);
    await api.call("PATCH", `/assistants/${assistant_id}`, { name: "second" }, own.headers);
    const door = api.newDoor();
    const { thread_id } = await api.call("POST", "/threads", {}, own.headers);
    const body = { assistant_id, input: { steps: [], door: door.path } };
    const { run_id } = await api.call("POST", `/threads/${thread_id}/runs`, body, own.headers);
    await api.call("DELETE", `/assistants/${assistant_id}?delete_threads=true`, undefined, stranger);
    expect((await api.send("GET", `/assistants/${assistant_id}`, undefined, stranger)).status).toBe(404);
    expect(await api.call("GET", `/assistants/${assistant_id}`, undefined, own.headers)).toMatchObject({
      name: "second",
      version: 2,
    });
    const versions = await api.call("POST", `/assistants/${assistant_id}/versions`, {}, own.headers);
    expect(versions.map(({ version }: Wire) => version)).toEqual([2, 1]);
    door.open();
    await api.call("GET", `/threads/${thread_id}/runs/${run_id}/join`, undefined, own.headers);
    const run = await api.call("GET", `/threads/${thread_id}/runs/${run_id}`, undefined, own.headers);
    expect(run.status).toBe("success");
  });

  it("a cancel of all runs stops only those of its own workspace", async () => {
    const begin = async (headers: Headers) => {
      const { thread_id } = await api.call("POST", "/threads", {}, headers);
      const door = api.newDoor();
      const body = { assistant_id: "slow", input: { steps: [], door: door.path } };
      const { run_id } = await api.call("POST", `/threads/${thread_id}/runs`, body, headers);
      const status = async () =>
        (await api.call("GET", `/threads/${thread_id}/runs/${run_id}`, undefined, headers)).status;
      await until("the run is running", async () => (await status()) === "running");
      return { door, status };
    };
    const theirs = await begin(own.headers);
    const mine = await begin(stranger);
    await api.call("POST", "/runs/cancel", { status: "all" }, stranger);
    await until("the own run has stopped", async () => (await mine.status()) === "interrupted");
    expect(await theirs.status()).toBe("running");
    theirs.door.open();
    await until("the other one has ended", async () => (await theirs.status()) === "success");
  });

  it("the user of a run is the owner of the key", async () => {
    const { seen } = await api.call("POST", "/runs/wait", { assistant_id: "inspect", input: {} }, own.headers);
    expect(seen.configurable.user_id).toBe("eve");
    expect(JSON.stringify(seen)).not.toContain(own.headers["X-Api-Key"]);
  });

  it("names of datasets and experiments are each workspace's own", async () => {
    const upload = documented();
    for (const headers of [own.headers, stranger]) {
      const answer = await api.send("POST", "/api/v1/datasets/upload-experiment", upload, headers);
      expect(answer.status).toBe(200);
    }
  });

  it("a caller with the token of a shared dataset reads only that dataset, from any workspace", async () => {
    const { share_token } = await api.call("PUT", `/api/v1/datasets/${own.dataset}/share`, undefined, own.headers);
    for (const headers of [{}, stranger, { "X-Tenant-Id": "nonsense" }]) {
      const path = `/api/v1/public/${share_token}`;
      expect((await api.call("GET", `${path}/datasets`, undefined, headers)).id).toBe(own.dataset);
      expect((await api.send("GET", `${path}/datasets/sessions`, undefined, headers)).body).toEqual([]);
    }
    expect((await api.send("GET", `/api/v1/datasets/${own.dataset}`, undefined, stranger)).status).toBe(404);
  });

  it("the key of the environment works in any workspace that it names", async () => {
    const headers = { ...ADMIN, "X-Tenant-Id": tenant.toUpperCase() };
    expect((await api.call("GET", `/threads/${own.thread}`, undefined, headers)).thread_id).toBe(own.thread);
    expect((await api.send("GET", `/threads/${own.thread}`, undefined, ADMIN)).status).toBe(404);
  });
});
