import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { run, type TestRun, TraceClient } from "./trace-client.ts";

const UNKNOWN = randomUUID();

describe("the prices of a workspace", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await closedService("sqlite");
  });
  afterAll(() => api.stop());

  const workspace = async () =>
    new TraceClient(api.service, await newCaller(api, { tenant_id: await newWorkspace(api) }));

  const entry = (fields: object = {}) => ({
    name: "house",
    match_pattern: "^house-\\d+$",
    prompt_cost: 0.001,
    completion_cost: "0.01",
    ...fields,
  });

  const create = async (client: TraceClient, fields: object = {}) => {
    const answer = await client.json("POST", "/model-price-map", entry(fields));
    expect([answer.status, answer.body]).toEqual([200, answer.body]);
    return answer.body;
  };

  /** A model call with 100 tokens of input, 20 of them from the cache, and 10 of output. */
  const call = (fields: Record<string, unknown> & { parent?: TestRun; at?: number } = {}, metadata = {}) =>
    run({
      run_type: "llm",
      extra: { metadata: { ls_model_name: "house-7", ls_provider: "us", ...metadata } },
      outputs: {
        usage_metadata: {
          input_tokens: 100,
          output_tokens: 10,
          total_tokens: 110,
          input_token_details: { cache_read: 20 },
        },
      },
      ...fields,
    });

  const costOf = async (client: TraceClient, traced: TestRun) => {
    await client.post(traced);
    return (await client.read(traced.id)).total_cost;
  };

  it("are created, listed, replaced and deleted", async () => {
    const client = await workspace();
    const details = { prompt_cost_details: { cache_read: "0.0001" }, provider: "us", match_path: ["deployment"] };
    const created = await create(client, { ...details, start_time: "2026-01-01" });
    expect(created).toEqual({
      ...entry(details),
      id: expect.any(String),
      completion_cost_details: null,
      start_time: "2026-01-01T00:00:00.000+00:00",
    });
    const other = await create(client, { name: "other" });
    expect(other.match_path).toEqual(["model", "model_name", "model_id", "model_path", "endpoint_name"]);
    expect((await client.get("/model-price-map")).body).toEqual([created, other]);

    const path = `/model-price-map/${created.id}`;
    const replaced = await client.json("PUT", path, entry({ name: "cheap", prompt_cost: 0 }));
    expect(replaced.body).toMatchObject({ id: created.id, name: "cheap", prompt_cost: 0, provider: null });
    expect((await client.get("/model-price-map")).body).toEqual([replaced.body, other]);
    expect((await client.send("DELETE", path, "")).status).toBe(200);
    expect((await client.send("DELETE", path, "")).status).toBe(404);
    expect((await client.get("/model-price-map")).body).toEqual([other]);
  });

  it("are unique by name, pattern, path, provider and start", async () => {
    const client = await workspace();
    const first = await create(client);
    expect((await client.json("POST", "/model-price-map", entry({ prompt_cost: 7 }))).status).toBe(409);
    const second = await create(client, { provider: "us" });
    await create(client, { start_time: "2026-01-01" });
    expect((await client.json("PUT", `/model-price-map/${second.id}`, entry())).status).toBe(409);
    expect((await client.json("PUT", `/model-price-map/${first.id}`, entry({ prompt_cost: 8 }))).status).toBe(200);
  });

  it.each([
    [{ prompt_cost: -1 }, "prices must be decimal amounts"],
    [{ completion_cost: "free" }, "prices must be decimal amounts"],
    [{ match_pattern: "(a" }, "not a regular expression"],
    [{ match_pattern: "(?=a)a" }, "not a regular expression"],
    [{ match_pattern: "a".repeat(201) }, "200 characters"],
    [{ match_pattern: "((a{1,50}){1,50}){1,50}" }, "repeat"],
    [{ start_time: "yesterday" }, "start_time must be an ISO 8601 time"],
    [{ name: "" }, "at least 1 character"],
    [{ match_path: [] }, "at least 1 item"],
    [{ prompt_cost_details: { cache_read: null } }, "must be a number"],
  ])("are refused with %j", async (fields, reason) => {
    const answer = await (await workspace()).json("POST", "/model-price-map", entry(fields));
    expect([answer.status, JSON.stringify(answer.body.detail)]).toEqual([422, expect.stringContaining(reason)]);
  });

  it("determine the cost of later runs of the workspace only", async () => {
    const [client, stranger] = [await workspace(), await workspace()];
    expect(await costOf(client, call())).toBeNull();
    const { id } = await create(client, { prompt_cost_details: { cache_read: 0 } });
    // 80 × 0.001 + 20 × 0 + 10 × 0.01
    expect(await costOf(client, call())).toBe(0.18);
    expect(await costOf(stranger, call())).toBeNull();
    expect(await costOf(client, call({}, { ls_model_name: "house-x" }))).toBeNull();
    await client.json("PUT", `/model-price-map/${id}`, entry({ prompt_cost: 0, completion_cost: 1 }));
    expect(await costOf(client, call())).toBe(10);
    await client.send("DELETE", `/model-price-map/${id}`, "");
    expect(await costOf(client, call())).toBeNull();
    for (const [method, path] of [
      ["PUT", id],
      ["DELETE", id],
      ["PUT", UNKNOWN],
    ] as const)
      expect((await stranger.json(method, `/model-price-map/${path}`, entry())).status).toBe(404);
  });

  it("take precedence over the built-in price, the newest before the run first", async () => {
    const client = await workspace();
    const known = { ls_model_name: "gpt-4o", ls_provider: "openai" };
    const builtin = await costOf(client, call({}, known));
    expect(builtin).toBeGreaterThan(0);
    const gpt = { match_pattern: "^gpt-4o", provider: "openai" };
    await create(client, { ...gpt, start_time: "2027-01-01" });
    expect(await costOf(client, call({}, known))).toBe(builtin);
    await create(client, { ...gpt, start_time: "2026-01-01", completion_cost: 1 });
    expect(await costOf(client, call({}, known))).toBe(10.1);
    await create(client, { ...gpt, completion_cost: 5 });
    expect(await costOf(client, call({}, known))).toBe(10.1);
  });

  it("follow a start that is sent later, for the run and its trace", async () => {
    const client = await workspace();
    await create(client, { prompt_cost: 0.001, completion_cost: 0 });
    await create(client, { prompt_cost: 0.002, completion_cost: 0, start_time: "2026-02-01" });
    const root = run();
    const model = call({ parent: root });
    await client.post(root);
    expect(await costOf(client, model)).toBe(0.1);
    const patch = { id: model.id, start_time: "2026-02-02T00:00:00Z" };
    expect((await client.json("PATCH", `/runs/${model.id}`, patch)).status).toBe(202);
    const costs = await Promise.all([model, root].map(async ({ id }) => (await client.read(id)).total_cost));
    expect(costs).toEqual([0.2, 0.2]);
  });

  it("do not change stored runs until the project is priced again", async () => {
    const client = await workspace();
    const session_name = randomUUID();
    const root = run({ session_name });
    const first = call({ session_name, parent: root, at: 1 });
    const second = call({ session_name, parent: root, at: 2 });
    const sent = call({
      session_name,
      at: 3,
      outputs: { usage_metadata: { input_tokens: 1, output_tokens: 1, total_cost: 3 } },
    });
    await client.post(root, first, second, sent);
    const project = await client.session(session_name);
    expect(project.total_cost).toBe(3);
    await create(client);
    expect((await client.read(root.id)).total_cost).toBeNull();

    const reprice = (session_id: string, by = client) => by.json("POST", "/app/api/reprice", { session_id });
    expect((await reprice(project.id)).body).toEqual({ traces: 2, runs: 4, next: null });
    expect(await client.read(root.id)).toMatchObject({ total_cost: 0.4, prompt_cost: 0.2, completion_cost: 0.2 });
    expect(await client.read(first.id)).toMatchObject({ total_cost: 0.2 });
    // The client sent the total alone.
    expect(await client.read(sent.id)).toMatchObject({ total_cost: 3, prompt_cost: 0.001 });
    expect((await client.session(session_name)).total_cost).toBe(3.4);
    expect((await reprice(project.id)).body).toEqual({ traces: 2, runs: 0, next: null });
    expect((await reprice(project.id, await workspace())).status).toBe(404);
    expect((await client.json("POST", "/app/api/reprice", { session_id: project.id, after: "?" })).status).toBe(400);
  });

  it("are applied in several steps to a large project", async () => {
    const client = await workspace();
    const session_name = randomUUID();
    const roots = Array.from({ length: 450 }, (_, at) => call({ session_name, at }));
    await client.post(...roots);
    await create(client);
    const { id } = await client.session(session_name);
    const { body } = await client.json("POST", "/app/api/reprice", { session_id: id });
    expect(body).toEqual({ traces: 450, runs: 450, next: null });
    expect((await client.session(session_name)).total_cost).toBeCloseTo(90, 9);
  });
});
