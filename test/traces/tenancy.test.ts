import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { until } from "../support/until.ts";
import { partsOf, run, TraceClient } from "./trace-client.ts";

describe("the traces of two workspaces", () => {
  let api: Scenario;
  let own: TraceClient;
  let stranger: TraceClient;
  let first: string;
  let second: string;
  beforeAll(async () => {
    api = await closedService("sqlite", { THREADMILL_TRACING: "on" });
    [first, second] = [await newWorkspace(api), await newWorkspace(api)];
    own = new TraceClient(api.service, await newCaller(api, { tenant_id: first }));
    stranger = new TraceClient(api.service, await newCaller(api, { tenant_id: second }));
  });
  afterAll(() => api.stop());

  it("may have the same run id, and do not change each other's runs, feedback or attachments", async () => {
    const traced = run({ name: "own", outputs: { secret: 1 } });
    const feedback = randomUUID();
    const score = { [`feedback.${feedback}`]: { run_id: traced.id, key: "k", score: 1 } };
    const attachment = { [`attachment.${traced.id}.a`]: [Buffer.from("own"), "text/plain"] };
    expect((await own.sendParts({ ...partsOf("post", [traced]), ...score, ...attachment })).status).toBe(202);
    const before = await own.read(traced.id);

    expect((await stranger.get(`/runs/${traced.id}`)).status).toBe(404);
    expect((await stranger.json("PATCH", `/runs/${traced.id}`, { outputs: { stolen: 1 } })).status).toBe(202);
    expect((await stranger.post(run({ id: traced.id, name: "stranger" }))).status).toBe(202);
    const theirs = await stranger.sendParts({ ...score, ...attachment });
    expect(theirs.body.detail).toMatchObject([{ loc: ["body", `feedback.${feedback}`] }]);
    const single = { id: feedback, run_id: traced.id, key: "k", score: 0 };
    expect((await stranger.json("POST", "/feedback", single)).status).toBe(409);
    expect(await stranger.read(traced.id)).toMatchObject({
      name: "stranger",
      outputs: { stolen: 1 },
      feedback_stats: {},
    });
    expect(await own.read(traced.id)).toEqual(before);
  });

  it("cannot name each other's sessions, parents or traces", async () => {
    const [root, other] = [run({ session_name: "private" }), run()];
    await own.post(root);
    const { session_id } = await own.read(root.id);
    const answer = await stranger.post({ ...other, session_id });
    expect(answer.body.detail).toMatchObject([{ msg: "Value error, Session not found" }]);
    const child = run({ parent: root });
    expect((await stranger.post(child)).status).toBe(202);
    expect((await own.read(root.id)).child_run_ids).toEqual([]);
    expect(await own.query({ trace: root.id })).toHaveLength(1);
    expect(await stranger.query({ session: [session_id] })).toEqual([]);
  });

  it("contain the runs of their own agents, which only their callers delete", async () => {
    const [mine, theirs] = [await newCaller(api, { tenant_id: first }), await newCaller(api, { tenant_id: second })];
    const start = async (headers: Record<string, string>) => {
      const { thread_id } = await api.call("POST", "/threads", {}, headers);
      const body = { assistant_id: "chain", input: { steps: [] } };
      const created = await api.call("POST", `/threads/${thread_id}/runs`, body, headers);
      await api.call("GET", `/threads/${thread_id}/runs/${created.run_id}/join`, undefined, headers);
      return created;
    };
    const { thread_id, run_id } = await start(mine);
    const root = await until("the trace is stored", async () => {
      const { status, body } = await own.get(`/runs/${run_id}`);
      return status === 200 && body;
    });
    expect(root.extra.metadata).toMatchObject({ thread_id, graph_id: "chain" });
    expect((await stranger.get(`/runs/${run_id}`)).status).toBe(404);
    // The same run id in the other workspace, and a deletion there.
    await stranger.post(run({ id: run_id, name: "stranger" }));
    expect((await api.send("DELETE", `/threads/${thread_id}/runs/${run_id}`, undefined, theirs)).status).toBe(404);
    await api.call("DELETE", `/threads/${thread_id}/runs/${run_id}`, undefined, mine);
    await until("the trace is deleted", async () => (await own.get(`/runs/${run_id}`)).status === 404);
    expect((await stranger.read(run_id)).name).toBe("stranger");
  });

  it("need the scope of the routes with the same effect", async () => {
    const agents = new TraceClient(api.service, await newCaller(api, { scopes: ["agents"] }));
    const experiments = new TraceClient(api.service, await newCaller(api, { scopes: ["experiments"] }));
    const start = { assistant_id: "chain", input: { steps: [] } };
    for (const path of ["/runs", "/api/v1/runs"]) {
      expect((await agents.json("POST", path, run())).status).toBe(403);
      expect((await experiments.json("POST", path, run())).status).toBe(202);
      expect((await new TraceClient(api.service).json("POST", path, run())).status).toBe(401);
    }
    expect((await experiments.json("POST", "/runs", start)).status).toBe(403);
    expect((await agents.json("POST", "/runs", start)).status).toBe(200);
    expect((await agents.json("POST", "/runs/batch", { post: [run()] })).status).toBe(403);
    expect((await experiments.json("POST", "/runs/batch", [start])).status).toBe(403);
    expect((await agents.json("POST", "/otel/v1/traces", {})).status).toBe(403);
    expect((await agents.json("PATCH", `/runs/${randomUUID()}`, {})).status).toBe(403);
  });
});
