import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseSse } from "../../support/sse.ts";
import { openOn } from "../../support/storage.ts";
import { until } from "../../support/until.ts";
import { ADMIN, closedService, newCaller } from "../callers.ts";
import { AUTH_CONFIG, type Scenario, type Wire } from "../scenario.ts";

type Headers = Record<string, string>;
const bearer = (name: string): Headers => ({ authorization: `Bearer ${name}` });
const alice = bearer("alice");
const bob = bearer("bob");

describe("handlers of an authentication module", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService("sqlite", {}, { config: AUTH_CONFIG });
  });
  afterAll(() => api.stop());

  const newThread = async (headers: Headers, body: object = {}): Promise<string> =>
    (await api.call("POST", "/threads", body, headers)).thread_id;
  const statusOf = async (headers: Headers, path: string): Promise<number> =>
    (await api.send("GET", path, undefined, headers)).status;
  const search = (headers: Headers): Promise<Wire[]> => api.call("POST", "/threads/search", {}, headers);

  it("decide whether the state of a paused call of MCP is still that of its caller", async () => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
    };
    const call = async (requestState?: string): Promise<Wire> => {
      const params = { name: "gate", arguments: { steps: [] }, requestState, _meta };
      const headers = {
        ...{ accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28" },
        ...{ "mcp-method": "tools/call", "mcp-name": "gate", ...alice },
      };
      const body = { jsonrpc: "2.0", method: "tools/call", params, id: 1 };
      return parseSse((await api.send("POST", "/mcp", body, headers)).text).at(-1)?.data;
    };
    const { requestState } = (await call()).result;
    expect((await call(requestState)).result.resultType).toBe("input_required");
    const { runs } = await api.call("GET", "/app/api/runs?status=interrupted", undefined, ADMIN);
    for (const { thread_id } of runs)
      await api.call("PATCH", `/threads/${thread_id}`, { metadata: { owner: "bob" } }, ADMIN);
    expect((await call(requestState)).error).toMatchObject({ code: -32602 });
  });

  it("see a command that a client of the thread protocol sends as an input", async () => {
    const careful = bearer("careful");
    const thread_id = await newThread(careful);
    const input = { lg_name: "Command", goto: ["c"], update: { steps: ["x"] } };
    const start = async (given: object) => {
      const body = { id: 1, method: "run.start", params: { assistant_id: "chain", input: given } };
      return (await api.send("POST", `/threads/${thread_id}/commands`, body, careful)).status;
    };
    expect(await start(input)).toBe(403);
    expect(await start({ steps: [] })).toBe(200);
  });

  it("give the graph the user, and keep it out of the record of the run", async () => {
    const thread_id = await newThread(alice);
    const body = { assistant_id: "inspect", input: {}, config: { configurable: { langgraph_auth_user: "mallory" } } };
    const { seen } = await api.call("POST", `/threads/${thread_id}/runs/wait`, body, alice);
    const permissions = ["admin", "threads:write"];
    expect(seen.configurable).toMatchObject({
      user_id: "alice",
      langgraph_auth_user_id: "alice",
      langgraph_auth_permissions: permissions,
      langgraph_auth_user: {
        ...{ identity: "alice", display_name: "alice", is_authenticated: true, permissions, team: "blue" },
        path: `/threads/${thread_id}/runs/wait`,
      },
    });
    const [run] = await api.call("GET", `/threads/${thread_id}/runs`, undefined, alice);
    expect(run.kwargs.config.configurable.user_id).toBe("alice");
    expect(JSON.stringify(run)).not.toContain("blue");
  });

  it.each([
    ["no user", {}, 401, "Who are you?"],
    ["a refusal", bearer("poor"), 402, "Pay first"],
    ["a handler that returns null", bearer("nobody"), 401, "Unauthorized"],
    ["a handler that throws", bearer("throws"), 500, "module of the project failed"],
    ["a user without an identity", bearer("unnamed"), 500, "module of the project failed"],
    ["the header of Studio", { "x-auth-scheme": "langsmith" }, 401, "Who are you?"],
    ["a key that does not exist", { "x-api-key": "root" }, 401, "Who are you?"],
  ])("refuse %s", async (_, headers, status, detail) => {
    const answer = await api.send("POST", "/threads", {}, headers as Headers);
    expect([answer.status, answer.body.detail]).toEqual([status, expect.stringContaining(detail)]);
    expect(answer.text).not.toContain("internal");
    if (detail === "Who are you?") expect(answer.headers.get("x-reason")).toBe("no token");
    if (status === 401) expect(answer.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("refuse, and fail when their result is invalid", async () => {
    const thread_id = await newThread(bearer("guest"));
    const refused = await api.send("DELETE", `/threads/${thread_id}`, undefined, bearer("guest"));
    expect([refused.status, refused.body]).toEqual([403, { detail: "Forbidden" }]);
    // A filter with `undefined` would otherwise select the crons of all users.
    expect((await api.send("POST", "/runs/crons/search", {}, bearer("sloppy"))).status).toBe(500);
    expect(await statusOf(bearer("guest"), `/threads/${thread_id}`)).toBe(200);
  });

  it("are not called for /info, which clients read before they have a token", async () => {
    for (const headers of [{}, bearer("poor"), bearer("throws"), { "x-api-key": "wrong" }] as Headers[]) {
      const { status, body } = await api.send("GET", "/info", undefined, headers);
      expect([status, body]).toEqual([200, expect.objectContaining({ flags: expect.any(Object) })]);
    }
    expect((await api.send("GET", "/docs")).status).toBe(401);
  });

  it("change the metadata of new records", async () => {
    const thread_id = await newThread(alice, { metadata: { owner: "bob", topic: "tea" } });
    expect((await api.call("GET", `/threads/${thread_id}`, undefined, alice)).metadata).toEqual({
      ...{ owner: "alice", topic: "tea" },
    });
    const created = randomUUID();
    const body = { assistant_id: "chain", input: { steps: [] }, if_not_exists: "create" };
    await api.call("POST", `/threads/${created}/runs/wait`, body, alice);
    expect(await statusOf(alice, `/threads/${created}`)).toBe(200);
    expect(await statusOf(bob, `/threads/${created}`)).toBe(404);
    expect((await api.send("POST", `/threads/${created}/runs/wait`, body, bob)).status).toBe(404);
  });

  it("see the assistant of a run that answers an interrupt", async () => {
    const thread_id = await newThread(alice);
    await api.call("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: "gate", input: { steps: [] } }, alice);
    const { tasks, metadata } = await api.call("GET", `/threads/${thread_id}/state`, undefined, alice);
    const params = { interrupt_id: tasks[0].interrupts[0].id, response: "Ada" };
    const { result } = await api.call(
      "POST",
      `/threads/${thread_id}/commands`,
      { id: 1, method: "input.respond", params },
      alice,
    );
    const run = await api.call("GET", `/threads/${thread_id}/runs/${result.run_id}`, undefined, alice);
    expect(run.metadata).toMatchObject({ owner: "alice", assistant_seen: metadata.assistant_id });
  });

  it("let all users read default assistants, and no user change them", async () => {
    const found = await api.call("POST", "/assistants/search", { graph_id: "chain" }, bearer("dora"));
    expect(found).toEqual([expect.objectContaining({ name: "chain" })]);
    const path = `/assistants/${found[0].assistant_id}`;
    expect((await api.send("PATCH", path, { name: "mine" }, alice)).status).toBe(404);
    expect((await api.send("DELETE", path, undefined, alice)).status).toBe(404);
  });

  it("let users join their stateless runs after the end", async () => {
    const { run_id } = await api.call("POST", "/runs", { assistant_id: "chain", input: { steps: [] } }, alice);
    for (const headers of [alice, alice]) expect(await statusOf(headers, `/runs/${run_id}/join`)).toBe(200);
    expect(await statusOf(bob, `/runs/${run_id}/join`)).toBe(404);
  });

  it("change the namespaces of items", async () => {
    await api.call("PUT", "/store/items", { namespace: ["a"], key: "k", value: { n: 1 } }, alice);
    const { items } = await api.call("POST", "/store/items/search", { namespace_prefix: ["a"] }, alice);
    expect(items).toEqual([expect.objectContaining({ namespace: ["alice", "a"], value: { n: 1 } })]);
    expect((await api.call("POST", "/store/namespaces", {}, alice)).namespaces).toEqual([["alice", "a"]]);
    expect((await api.call("POST", "/store/items/search", { namespace_prefix: ["alice"] }, bob)).items).toEqual([]);
  });

  const onTick = { assistant_id: "inspect", input: {}, schedule: "0 9 * * *", on_run_completed: "keep" };

  /** The thread of a run that a cron creates, once the user finds it and the run has ended. */
  async function threadOfTick(cron_id: string, headers: Headers): Promise<Wire> {
    const storage = openOn(api.service.database);
    await storage.write((tx) =>
      tx.run(sql`update crons set next_at = now_ms() - 1000 where cron_id = ${cron_id}`.compile(tx.k)),
    );
    await storage.close();
    await api.call("POST", "/runs/crons", { ...onTick, enabled: false }, headers);
    const ended = async () =>
      (await search(headers)).find(({ metadata, values }: Wire) => metadata.cron_id === cron_id && values);
    return until("the run has ended", ended);
  }

  it("decide about each run of a cron, which belongs to its user", async () => {
    const { cron_id } = await api.call("POST", "/runs/crons", onTick, alice);
    const thread = await threadOfTick(cron_id, alice);
    expect(thread.values.seen.configurable.langgraph_auth_user).toMatchObject({ identity: "alice", team: "blue" });
    expect(await statusOf(bob, `/threads/${thread.thread_id}`)).toBe(404);
  });

  it("run a cron as the user who has changed what it runs", async () => {
    const { cron_id } = await api.call("POST", "/runs/crons", { ...onTick, metadata: { editors: ["bob"] } }, alice);
    const patch = (body: object, headers: Headers) => api.send("PATCH", `/runs/crons/${cron_id}`, body, headers);
    expect((await patch({ enabled: true }, bob)).body.user_id).toBe("alice");
    expect((await patch({ context: { of: "eve" } }, bearer("eve"))).status).toBe(404);
    expect((await patch({ context: { of: "bob" } }, bob)).body.user_id).toBe("bob");
    const thread = await threadOfTick(cron_id, bob);
    expect(thread.values.seen.configurable.langgraph_auth_user.identity).toBe("bob");
    expect(await statusOf(alice, `/threads/${thread.thread_id}`)).toBe(404);
  });

  it("do not apply to keys of administrators, and no other key takes their place", async () => {
    const thread_id = await newThread(alice);
    expect(await statusOf(ADMIN, `/threads/${thread_id}`)).toBe(200);
    expect((await api.call("GET", "/app/api/runs", undefined, ADMIN)).runs.length).toBeGreaterThan(0);
    const worker = await newCaller(api, { scopes: ["agents", "experiments"] });
    expect(await statusOf(worker, `/threads/${thread_id}`)).toBe(401);
    expect(await statusOf(worker, "/sessions")).toBe(200);
    const run = { assistant_id: "chain", input: {} };
    expect((await api.send("POST", "/runs", run, worker)).body.detail).toContain("required scope agents");
    const trace = { id: randomUUID(), name: "n", run_type: "chain", inputs: {}, start_time: new Date().toISOString() };
    expect((await api.send("POST", "/runs", trace, worker)).status).toBe(202);
    expect((await api.send("POST", "/runs", trace, alice)).body.detail).toContain("required scope experiments");
    for (const path of ["/sessions", "/admin/keys", "/v2/deployments", "/metrics", "/app/api/traces"])
      expect([path, await statusOf(alice, path)]).toEqual([path, 401]);
  });
});
