import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { Scenario, UNKNOWN_ID, type Wire } from "./scenario.ts";

/** `{"a":{"a":...}}`, so many objects deep, within the object that holds it. */
const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

const RUN = { assistant_id: "chain", input: { steps: ["in"] } };

describe.each(databases)("invalid requests on %s", (database) => {
  let api: Scenario;
  let thread_id: string;
  beforeAll(async () => {
    api = await Scenario.start(database, { THREADMILL_TEST_SECRET: "s3cret" });
    thread_id = await api.newThread();
    await api.wait(thread_id, RUN);
  });
  afterAll(async () => {
    expect(await api.get("/ok?check_db=1")).toEqual({ ok: true });
    await api.stop();
  });

  const send = (method: string, path: string, body?: unknown) =>
    api.send(method as "GET", path.replace("{t}", thread_id).replace("{nobody}", UNKNOWN_ID), body);

  describe("are refused with an error that names the field and the value:", () => {
    it.each<[string, string, unknown, string]>([
      ["POST", "/threads", "{", "The body is not valid JSON"],
      ["POST", "/threads", '{"metadata": {"a": 1,}}', "The body is not valid JSON"],
      ["POST", "/threads", "nope", "The body is not valid JSON"],
      ["POST", "/threads", '{"metadata": {"a": "\u0000"}}', "The body is not valid JSON"],
      ["POST", "/threads", '"text"', "body:"],
      ["POST", "/threads", "[]", "body:"],
      ["POST", "/threads", "null", "body:"],
      ["POST", "/threads", '{"__proto__": {"admin": true}}', "__proto__"],
      ["POST", "/threads", '{"metadata": {"deep": [{"__proto__": 1}]}}', "__proto__"],
      ["POST", "/threads", '{"metadata": {"constructor": {"prototype": {"x": 1}}}}', "constructor.prototype"],
      ["POST", "/threads", `{"metadata": ${nested(200)}}`, "levels deep; the limit is 100"],
      ["POST", "/threads", `{"metadata": {"a": ${"[".repeat(200)}${"]".repeat(200)}}}`, "levels deep"],
      ["POST", "/threads", `{"metadata": ${'{"a":['.repeat(50_000)}`, "levels deep"],
      ["POST", "/threads/{t}/runs", `{"assistant_id": "chain", "input": ${nested(200)}}`, "levels deep"],
      ["POST", "/threads", { metadata: ["a"] }, "body.metadata"],
      ["POST", "/threads", { thread_id: "not-a-uuid" }, "body.thread_id"],
      ["POST", "/threads", { thread_id: 7 }, "body.thread_id"],
      ["POST", "/threads", { if_exists: "replace" }, "body.if_exists"],
      ["POST", "/threads", { ttl: { ttl: -1 } }, "body.ttl"],
      ["POST", "/runs", { assistant_id: "chain", feedback_keys: ["score"] }, "body.feedback_keys: is not supported"],
      ["POST", "/threads", { supersteps: [{}] }, "body.supersteps"],
      ["PATCH", "/threads/{t}", { metadata: "text" }, "body.metadata"],
      ["GET", "/threads/{t}?include=everything", undefined, "query.include"],
      ["GET", "/threads/{t}/state?subgraphs=maybe", undefined, "query.subgraphs"],
      ["GET", "/threads/{t}/state?select=secrets", undefined, "query.select"],
      ["POST", "/threads/{t}/state/checkpoint", {}, "body.checkpoint"],
      ["POST", "/threads/{t}/history", { before: 5 }, "body.before"],
      ["POST", "/threads/{t}/history", { before: { configurable: {} } }, "body.before"],
      ["POST", "/threads/{t}/history", { limit: -1 }, "body.limit"],
      ["GET", "/threads/{t}/history?limit=0", undefined, "query.limit"],
      ["GET", "/threads/{t}/runs?limit=many", undefined, "query.limit"],
      ["GET", "/threads/{t}/runs?limit=1&limit=2", undefined, "query.limit"],
      ["GET", "/threads/{t}/runs?offset=99999999999999999999", undefined, "query.offset"],
      ["GET", "/threads/{t}/runs?status=done", undefined, "query.status"],
      ["GET", "/threads/{t}/runs?select=secret", undefined, "query.select"],
      ["POST", "/threads/{t}/runs", undefined, "body.assistant_id"],
      ["POST", "/threads/{t}/runs", { assistant_id: "" }, "body.assistant_id"],
      ["POST", "/threads/{t}/runs", { assistant_id: "x".repeat(501) }, "body.assistant_id"],
      ["POST", "/threads/{t}/runs", { assistant_id: ["chain"] }, "body.assistant_id"],
      ["POST", "/threads/{t}/runs", { ...RUN, stream_mode: "everything" }, "body.stream_mode"],
      ["POST", "/threads/{t}/runs", { ...RUN, stream_mode: ["values", "vales"] }, "body.stream_mode"],
      ["POST", "/threads/{t}/runs/stream", { ...RUN, stream_mode: [null] }, "body.stream_mode"],
      ["POST", "/threads/{t}/runs", { ...RUN, multitask_strategy: "queue" }, "body.multitask_strategy"],
      ["POST", "/threads/{t}/runs", { ...RUN, durability: "never" }, "body.durability"],
      ["POST", "/threads/{t}/runs", { ...RUN, interrupt_before: "b" }, "body.interrupt_before"],
      ["POST", "/threads/{t}/runs", { ...RUN, interrupt_after: [1] }, "body.interrupt_after"],
      ["POST", "/threads/{t}/runs", { ...RUN, config: { recursion_limit: 0 } }, "body.config"],
      ["POST", "/threads/{t}/runs", { ...RUN, config: { tags: "a" } }, "body.config"],
      ["POST", "/threads/{t}/runs", { ...RUN, config: { configurable: [] } }, "body.config"],
      ["POST", "/threads/{t}/runs", { ...RUN, context: "text" }, "body.context"],
      ["POST", "/threads/{t}/runs", { ...RUN, metadata: [1] }, "body.metadata"],
      ["POST", "/threads/{t}/runs", { ...RUN, command: "go" }, "body.command"],
      ["POST", "/threads/{t}/runs", { ...RUN, command: { goto: 5 } }, "body.command"],
      ["POST", "/threads/{t}/runs", { ...RUN, command: { goto: [{ input: 1 }] } }, "body.command"],
      ["POST", "/threads/{t}/runs", { ...RUN, command: { update: "x" } }, "body.command"],
      ["POST", "/threads/{t}/runs", { ...RUN, checkpoint: { checkpoint_id: 5 } }, "body.checkpoint"],
      ["POST", "/threads/{t}/runs", { ...RUN, after_seconds: -1 }, "body.after_seconds"],
      ["POST", "/threads/{t}/runs", { ...RUN, after_seconds: 1e300 }, "body.after_seconds"],
      ["POST", "/threads/{t}/runs", '{"assistant_id": "chain", "after_seconds": 1e999}', "body.after_seconds"],
      ["POST", "/threads/{t}/runs", { ...RUN, webhook: "" }, "body.webhook"],
      ["POST", "/threads/{t}/runs", { ...RUN, webhook: "http://[" }, "body.webhook"],
      ["POST", "/threads/{t}/runs", { ...RUN, on_disconnect: "explode" }, "body.on_disconnect"],
      ["POST", "/threads/{t}/runs/wait?on_disconnect=explode", RUN, "query.on_disconnect"],
      ["POST", "/runs", { ...RUN, on_completion: "complete" }, "body.on_completion"],
      ["POST", "/runs/batch", undefined, "body"],
      ["POST", "/assistants", undefined, "body.graph_id"],
      ["POST", "/assistants", { graph_id: 5 }, "body.graph_id"],
      ["POST", "/assistants", { graph_id: "chain", config: "x" }, "body.config"],
      ["PATCH", "/assistants/chain", { name: 5 }, "body.name"],
      ["DELETE", "/assistants/chain?delete_threads=perhaps", undefined, "query.delete_threads"],
      ["POST", "/assistants/chain/latest", { version: "1" }, "body.version"],
      ["GET", "/ok?check_db=perhaps", undefined, "query.check_db"],
    ])("%s %s %j", async (method, path, body, where) => {
      const answer = await send(method, path, body);
      expect(answer).toMatchObject({ status: 422, body: { detail: expect.stringContaining(where) } });
      expect(Object.keys(answer.body)).toEqual(["detail"]);
      expect(answer.text.length).toBeLessThan(1_000);
    });

    it.each([
      ["GET", "/threads/nope"],
      ["PATCH", "/threads/nope"],
      ["DELETE", "/threads/123"],
      ["POST", "/threads/nope/copy"],
      ["GET", "/threads/nope/state"],
      ["GET", "/threads/nope/history"],
      ["GET", "/threads/nope/runs"],
      ["POST", "/threads/nope/runs"],
      ["GET", "/threads/{t}/runs/nope"],
      ["GET", "/threads/{t}/runs/nope/join"],
      ["GET", "/threads/{t}/runs/nope/stream"],
      ["POST", "/threads/{t}/runs/nope/cancel"],
      ["DELETE", "/threads/{t}/runs/nope"],
      ["GET", "/runs/nope/join"],
      ["GET", "/runs/nope/stream"],
      ["GET", "/threads/%00"],
      ["GET", "/threads/{t}%20"],
    ])("the id in %s %s that is not a UUID", async (method, path) => {
      const answer = await send(method, path, method === "POST" ? RUN : undefined);
      expect(answer).toMatchObject({
        status: 422,
        body: { detail: expect.stringMatching(/^path\.(thread|run)_id: must be a UUID/) },
      });
    });
  });

  it.each([
    ["GET", "/nowhere"],
    ["PUT", "/threads"],
    ["GET", "/assistants"],
    ["POST", "/threads/{t}/nothing"],
    ["GET", "/runs/crons/nope/x"],
    ["GET", "/threads/%E0%A4%A/state"],
    ["GET", "/assistants/__proto__"],
    ["GET", "/assistants/constructor/schemas"],
    ["GET", "/assistants/%00"],
    ["GET", "/threads/{t}/state/no-such-checkpoint"],
    ["GET", "/threads/{t}/state/%00"],
    ["GET", "/threads/{t}/state/%F0%9F"],
  ])("%s %s is not found, and says so as JSON", async (method, path) => {
    const answer = await send(method, path, method === "GET" ? undefined : {});
    expect([404, 422]).toContain(answer.status);
    expect(answer.body).toEqual({ detail: expect.any(String) });
  });

  it.each(["nope", "__proto__", "constructor", "toString", "hasOwnProperty"])(
    "the graph %s is not found",
    async (name) => {
      expect(await send("POST", "/assistants", `{"graph_id": "${name}"}`)).toMatchObject({
        status: 404,
        body: { detail: expect.stringContaining(`"${name}"`) },
      });
      expect(await send("POST", "/runs", { assistant_id: name })).toMatchObject({
        status: 404,
        body: { detail: expect.stringContaining(`"${name}"`) },
      });
    },
  );

  it.each([
    ["POST", "/threads"],
    ["POST", "/threads/search"],
    ["POST", "/threads/count"],
    ["POST", "/assistants/search"],
    ["POST", "/assistants/count"],
    ["POST", "/assistants/chain/versions"],
    ["POST", "/threads/{t}/copy"],
    ["POST", "/threads/{t}/history"],
    ["PATCH", "/threads/{t}"],
  ])("is not a missing body for %s %s, which is accepted there", async (method, path) => {
    expect((await send(method, path)).status).toBe(200);
    expect((await send(method, path, "")).status).toBe(200);
    expect((await send(method, path, " \n")).status).toBe(200);
  });

  it("is text that no database can store: U+FFFD is stored in its place", async () => {
    const text = '{"metadata": {"a\\u0000b": "x\\u0000y", "pair": "\\ud83d\\ude00", "lone": ["\\ud800", "z\\udfff"]}}';
    const thread = await api.post("/threads", text);
    expect(thread.metadata).toEqual({ "a\ufffdb": "x\ufffdy", pair: "😀", lone: ["\ufffd", "z\ufffd"] });
    expect((await api.thread(thread.thread_id)).metadata).toEqual(thread.metadata);
    expect(await api.post("/threads/count", '{"metadata": {"a\\u0000b": "x\\u0000y"}}')).toBeGreaterThan(0);
    const output = await api.wait(thread.thread_id, {
      assistant_id: "chain",
      input: { steps: ["n\0u", "s\ud800u"] },
      metadata: { m: "\0" },
    });
    expect(output.steps.slice(0, 2)).toEqual(["n\ufffdu", "s\ufffdu"]);
    expect((await api.state(thread.thread_id)).values).toEqual(output);
    const assistant = await api.post("/assistants", {
      graph_id: "chain",
      name: "a\0b",
      description: "\udc00",
      config: { configurable: { k: "\0" } },
    });
    expect(assistant).toMatchObject({
      name: "a\ufffdb",
      description: "\ufffd",
      config: { configurable: { k: "\ufffd" } },
    });
  });

  it.each([
    ["POST", "/threads/{t}/runs/{r}/cancel?reason=a%00b", 202],
    ["GET", "/threads/{t}/history?before=%00", 200],
    ["GET", "/threads/{t}/state?select=values.%00", 200],
    ["GET", "/assistants/parent/subgraphs/%00", 200],
  ])("is a NUL in the address: %s %s does not fail with a 5xx", async (method, path, status) => {
    const run = await api.newRun(await api.newThread(), { ...RUN, after_seconds: 3600 });
    const { status: got } = await api.send(
      method as "GET",
      path.replace("{t}", run.thread_id).replace("{r}", run.run_id),
    );
    expect([status, 404, 422]).toContain(got);
  });

  it.each<[string, object]>([
    ["a secret of the environment", { lc: 1, type: "secret", id: ["THREADMILL_TEST_SECRET"] }],
    [
      "an object of a class",
      { lc: 1, type: "constructor", id: ["langchain_core", "prompts", "PromptTemplate"], kwargs: {} },
    ],
    ["a class that is not there", { lc: 1, type: "constructor", id: ["nowhere", "Nothing"], kwargs: {} }],
  ])("is data that looks like the record of %s: it stays the data that was sent", async (_, value) => {
    const id = await api.newThread();
    await api.wait(id, { assistant_id: "fails", input: { kind: "none", value, steps: [] } });
    const seen = await api.send("GET", `/threads/${id}/state`);
    expect(seen.status).toBe(200);
    expect(seen.text).not.toContain("s3cret");
    expect(seen.body.values.value).toEqual(value);
    const next = await api.wait(id, { assistant_id: "fails", input: { steps: [] } });
    expect(next.value).toEqual(value);
  });

  it("is not an object with the key constructor, nor one of ninety levels", async () => {
    expect((await api.post("/threads", '{"metadata": {"constructor": "x", "prototype": 1}}')).metadata).toEqual({
      constructor: "x",
      prototype: 1,
    });
    const deep: Wire = JSON.parse(nested(90));
    const id = await api.newThread();
    const { value } = await api.wait(id, { assistant_id: "fails", input: { kind: "none", value: deep } });
    expect(value).toEqual(deep);
    expect((await api.state(id)).values.value).toEqual(deep);
  });
});

describe.each(databases)("bodies over the limit on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, { HTTP_MAX_REQUEST_BODY_BYTES: "2000" });
  });
  afterAll(() => api.stop());

  const body = (bytes: number) =>
    JSON.stringify({ metadata: { a: "x".repeat(bytes - '{"metadata":{"a":""}}'.length) } });

  it("are refused with a JSON error, whatever they contain", async () => {
    for (const text of [body(2001), body(100_000), "x".repeat(2001)]) {
      expect(await api.send("POST", "/threads", text)).toMatchObject({
        status: 413,
        body: { detail: expect.stringContaining("2000 bytes") },
      });
    }
    expect((await api.send("POST", "/threads", body(2000))).status).toBe(200);
  });

  it("are refused even when they arrive in chunks of unknown length", async () => {
    const pieces = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 30; i++) controller.enqueue(new TextEncoder().encode("x".repeat(100)));
        controller.close();
      },
    });
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: pieces, duplex: "half" };
    const response = await api.service.threadmill.fetch(new Request("http://localhost/threads", init as RequestInit));
    expect(response.status).toBe(413);
    expect(await response.json()).toEqual({ detail: expect.stringContaining("2000 bytes") });
  });

  it.each([
    ["PATCH", "/datasets/upload-experiment"],
    ["PATCH", "/api/v1/runs/multipart"],
    ["POST", "/commits/datasets/upload-experiment"],
    ["POST", "/commits/runs/multipart"],
  ] as const)("are refused in %s %s, which is like the path of a route with its own limit", async (method, path) => {
    expect((await api.send(method as "POST", path, body(2001))).status).toBe(413);
  });

  it("are counted in bytes, not in characters", async () => {
    expect((await api.send("POST", "/threads", JSON.stringify({ metadata: { a: "é".repeat(1_500) } }))).status).toBe(
      413,
    );
  });
});
