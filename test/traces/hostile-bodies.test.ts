import { randomUUID } from "node:crypto";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PendingBodies } from "../../src/experiments/http/pending-bodies.ts";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { openBody } from "./open-body.ts";
import { multipart, partsOf, run, type TestRun, TraceClient } from "./trace-client.ts";

const BODY = { "content-type": "multipart/form-data; boundary=----boundary" };
const MIB = 2 ** 20;

describe.each(databases)("a hostile body of traces, on %s", (database) => {
  let api: Scenario;
  let client: TraceClient;
  let other: TraceClient;
  let headers: Record<string, string>;
  beforeAll(async () => {
    api = await closedService(database);
    headers = await newCaller(api, { tenant_id: await newWorkspace(api) });
    client = new TraceClient(api.service, headers);
    other = new TraceClient(api.service, await newCaller(api, { tenant_id: await newWorkspace(api) }));
  });
  afterAll(() => api.stop());

  const send = (body: Uint8Array, more: Record<string, string> = {}) =>
    client.send("POST", "/api/v1/runs/multipart", new Uint8Array(body), { ...BODY, ...more });
  /** Multipart parts with JSON text as it is. */
  const sendText = (parts: [name: string, json: string][]) =>
    send(
      Buffer.concat([
        ...parts.map(([name, json]) =>
          multipart({ [name]: [Buffer.from(json), "application/json"] }).subarray(0, -"------boundary--\r\n".length),
        ),
        Buffer.from("------boundary--\r\n"),
      ]),
    );

  it("that is cut anywhere is refused as a whole", async () => {
    const cut = run({ session_name: "cut" });
    const attachment = [Buffer.from("\r\n--x\r\n--"), "text/plain"];
    const body = multipart({ ...partsOf("post", [cut]), [`attachment.${cut.id}.a`]: attachment });
    const end = body.length - "--\r\n".length;
    const statuses = new Set<number>();
    for (let length = 0; length < end; length++) statuses.add((await send(body.subarray(0, length))).status);
    expect([...statuses]).toEqual([400]);
    expect((await client.get(`/runs/${cut.id}`)).status).toBe(404);
    expect((await send(body)).status).toBe(202);
  });

  it.each([
    ["gzip", gzipSync],
    ["zstd", zstdCompressSync],
  ])("that %s packs a thousand times smaller is refused without being unpacked as a whole", async (encoding, pack) => {
    const started_at = performance.now();
    const answer = await send(pack(Buffer.alloc(300 * MIB)), { "content-encoding": encoding });
    expect(answer.status).toBe(413);
    expect(performance.now() - started_at).toBeLessThan(20_000);
  });

  it("of spans is refused in the format of the request", async () => {
    const bomb = zstdCompressSync(Buffer.alloc(300 * MIB));
    const visitor = new TraceClient(api.service, {});
    for (const [sender, body, encoding, status, code, message] of [
      [client, Buffer.from("x"), "gzip", 400, 3, "not valid gzip"],
      [client, Buffer.from("x"), "zstd", 400, 3, "not valid zstd"],
      [client, Buffer.from([0xff]), "identity", 400, 3, "not a valid protobuf"],
      [client, Buffer.from("x"), "br", 415, 3, "br"],
      [client, bomb, "zstd", 413, 8, "larger than"],
      [visitor, Buffer.from("x"), "identity", 401, 16, "API key"],
    ] as const) {
      const headers = { "content-type": "application/x-protobuf", "content-encoding": encoding };
      const answer = await sender.send("POST", "/otel/v1/traces", new Uint8Array(body), headers);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([status, "application/x-protobuf"]);
      const reader = new BinaryReader(answer.bytes);
      expect([reader.tag()[0], reader.int32(), reader.tag()[0]]).toEqual([1, code, 2]);
      expect(reader.string()).toContain(message);
    }
    const json = { "content-type": "application/json", "content-encoding": "gzip" };
    expect(await client.send("POST", "/otel/v1/traces", "x", json)).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("not valid gzip") },
    });
  });

  it("with keys of prototypes is stored as data, or refused with the reason", async () => {
    const inputs = { constructor: "a", toString: 1, hasOwnProperty: null, valueOf: { constructor: { name: "b" } } };
    const stored = run({ inputs, outputs: inputs, extra: { metadata: inputs, constructor: 1 } });
    expect((await client.post(stored)).status).toBe(202);
    const { inputs: read, outputs, extra } = await client.read(stored.id);
    expect([read, outputs, extra.metadata, extra.constructor]).toEqual([inputs, inputs, inputs, 1]);
    const { inputs: _, ...main } = run();
    for (const json of ['{"__proto__": {"polluted": 1}}', '{"a": [{"constructor": {"prototype": {"polluted": 1}}}]}']) {
      const answer = await sendText([
        [`post.${main.id}`, JSON.stringify(main)],
        [`post.${main.id}.inputs`, json],
      ]);
      expect(answer.status).toBe(400);
      expect(answer.body.detail).toMatchObject([
        { loc: ["body", main.id, "inputs"], msg: expect.stringContaining("__proto__") },
      ]);
    }
    expect((await client.read(main.id)).inputs).toEqual({});
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    for (const name of ["__proto__", "constructor", "name"]) {
      const answer = await sendText([[`post.${randomUUID()}.${name}`, '{"polluted": 1}']]);
      expect(answer).toMatchObject({
        status: 400,
        body: { detail: [{ msg: expect.stringContaining("unknown part name") }] },
      });
    }
  });

  it("with NUL and unpaired surrogates has U+FFFD instead, wherever they are", async () => {
    const bad = "a\u0000\ud800";
    const good = "a\ufffd\ufffd";
    const odd = run({
      name: bad,
      run_type: bad,
      tags: [bad],
      inputs: { [bad]: [bad] },
      outputs: { text: bad },
      error: bad,
      extra: { metadata: { [bad]: bad } },
      session_name: bad,
    });
    expect(
      (
        await client.sendParts({
          ...partsOf("post", [odd]),
          [`attachment.${odd.id}.a\u0000b`]: [Buffer.from("x"), "text/plain"],
        })
      ).status,
    ).toBe(202);
    expect(await client.read(odd.id)).toMatchObject({
      name: good,
      run_type: good,
      tags: [good],
      inputs: { [good]: [good] },
      outputs: { text: good },
      error: good,
      extra: { metadata: { [good]: good } },
    });
    expect((await client.session(good)).run_count).toBe(1);
  });

  it("that is nested deeply keeps the nested value as text", async () => {
    const nested = (levels: number) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
    const deep = run({ inputs: { nested: nested(900) } });
    expect((await client.post(deep)).status).toBe(202);
    const { __unparsed } = (await client.read(deep.id)).inputs;
    expect(JSON.parse(__unparsed)).toEqual(deep.inputs);
    const { inputs: _, ...main } = run();
    const levels = 1_000_000;
    const answer = await sendText([
      [`post.${main.id}`, JSON.stringify(main)],
      [`post.${main.id}.inputs`, `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`],
    ]);
    expect(answer).toMatchObject({
      status: 400,
      body: { detail: [{ loc: ["body", main.id, "inputs"], msg: expect.stringContaining("levels deep") }] },
    });
    expect((await client.get(`/runs/${main.id}`)).status).toBe(200);
  });

  it("with the same part twice has the later one", async () => {
    const twice = run();
    const { inputs, outputs, ...main } = twice;
    expect(
      await sendText([
        [`post.${twice.id}.inputs`, '{"n": 1}'],
        [`post.${twice.id}`, JSON.stringify({ ...main, name: "first" })],
        [`post.${twice.id}.inputs`, '{"n": 2}'],
        [`post.${twice.id}`, JSON.stringify({ ...main, name: "second" })],
      ]),
    ).toMatchObject({ status: 202 });
    expect(await client.read(twice.id)).toMatchObject({ name: "second", inputs: { n: 2 } });
  });

  it("with feedback on an unknown run stores the rest", async () => {
    const [stored, id] = [run(), randomUUID()];
    const answer = await client.sendParts({ ...partsOf("post", [stored]), [`feedback.${id}`]: { key: "k", score: 1 } });
    expect(answer).toMatchObject({ status: 400, body: { detail: [{ loc: ["body", `feedback.${id}`] }] } });
    expect((await client.get(`/runs/${stored.id}`)).status).toBe(200);
  });

  it("with 100,000 tiny parts is answered with what is wrong with 100 of them", async () => {
    const part = (n: number) => `------boundary\r\nContent-Disposition: form-data; name="post.${n}"\r\n\r\n{}\r\n`;
    const parts = (count: number) =>
      Buffer.from(`${Array.from({ length: count }, (_, n) => part(n)).join("")}------boundary--\r\n`);
    // A machine that needs more than 8 s for it answers 503.
    const answer = await until("the body is read in time", async () => {
      const read = await send(parts(100_000));
      return read.status === 503 ? undefined : read;
    });
    expect(answer.status).toBe(400);
    expect(answer.body.detail).toHaveLength(100);
    const more = await send(parts(100_001));
    expect(more).toMatchObject({ status: 400, body: { detail: expect.stringContaining("maximum allowed count") } });
  });

  it("with huge names, tags and headers is cut, or refused by name", async () => {
    const text = "x".repeat(MIB);
    const long = run({ name: text, run_type: text, tags: Array(1_000).fill(text.slice(0, 1_000)) });
    expect((await client.post(long)).status).toBe(202);
    const read = await client.read(long.id);
    expect([read.name.length, read.run_type.length, read.tags.length, read.tags[0].length]).toEqual([
      1_000, 64, 100, 200,
    ]);
    const refused = await client.post(run({ session_name: text }), run({ extra: { metadata: { thread_id: text } } }));
    expect(refused.status).toBe(400);
    expect(refused.body.detail).toMatchObject([{ loc: ["body", expect.any(String), "session_name"] }]);
    const name = await client.sendParts({ [`post.${text}`]: {} });
    expect(name).toMatchObject({ status: 400, body: { detail: expect.stringContaining("header") } });
    const attachment = await client.sendParts({
      [`attachment.${long.id}.${"x".repeat(201)}`]: [Buffer.from(""), text],
    });
    expect(attachment.status).toBe(400);
  });

  it("with a path of 10,000 runs, or one that contradicts itself, is refused", async () => {
    const { dotted_order, ...deep } = run();
    const path = Array.from({ length: 10_000 }, () => `20260131T120000000000Z${randomUUID()}`);
    const answers = await Promise.all(
      [[...path, dotted_order].join("."), `${dotted_order}.${dotted_order}`, ".", "..", `${dotted_order}.`, ""].map(
        (order) => client.post({ ...deep, trace_id: order.slice(22, 58) || deep.id, dotted_order: order } as TestRun),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 400]);
    expect((await client.get(`/runs/${deep.id}`)).status).toBe(404);
  });

  it.each([
    ["1901-01-01T00:00:00Z", 202],
    ["2249-12-31T23:59:59.999999Z", 202],
    [0, 202],
    [7.9e15, 202],
    ["0001-01-01T00:00:00Z", 400],
    ["9999-12-31T23:59:59.999999Z", 400],
    ["12026-01-31T12:00:00Z", 400],
    ["2026-02-30T12:00:00Z", 400],
    [-1, 400],
    [1e300, 400],
    ["", 400],
  ])("with the time %j is readable, or refused by the field", async (time, status) => {
    const { dotted_order, ...odd } = run({ start_time: time, end_time: time, session_name: `time ${time}` });
    const answer = await client.json("POST", "/api/v1/runs/batch", { post: [odd] });
    expect([time, answer.status, answer.body]).toMatchObject([
      time,
      status,
      status === 202
        ? {}
        : {
            detail: [
              { loc: ["body", odd.id, "start_time"], msg: expect.stringContaining("in the years 1901 to 2250") },
              {},
            ],
          },
    ]);
    if (status !== 202) return;
    expect((await client.read(odd.id)).id).toBe(odd.id);
    expect(await client.query({ session: (await client.session(`time ${time}`)).id })).toHaveLength(1);
  });

  it("leaves room for the bodies of other workspaces", async () => {
    const end = Promise.withResolvers<void>();
    const opened = Array.from({ length: 6 }, () => openBody(api, headers, end));
    await until("one body is there", async () => opened.some(({ sent }) => sent() === 60));
    expect(opened.reduce((sum, { sent }) => sum + sent(), 0)).toBeLessThan(170);
    expect((await other.post(run())).status).toBe(202);
    end.resolve();
    await Promise.all(opened.map(({ answer }) => answer));
    expect((await client.post(run())).status).toBe(202);
  });
});

describe("the bodies of a workspace that wait for room", () => {
  it("are refused after a while, and read again when there is room", async () => {
    const pending = new PendingBodies(50);
    const body = (mib: number) => ({
      chunks: Array.from({ length: mib }, () => new Uint8Array(MIB)),
      length: undefined,
    });
    const stored = Promise.withResolvers<number>();
    const store = (bytes: Uint8Array) => stored.promise.then(() => bytes.length);
    // Not stored yet, and not sent on: 2 bodies of 60 MiB are more than the share of a workspace.
    const first = Array.from({ length: 2 }, () => pending.use("one", body(60), store).catch((error) => error.code));
    const slow = { chunks: [new Promise<Uint8Array>(() => undefined)], length: undefined };
    void pending.use("one", slow as never, store);
    expect(await pending.use("one", body(1), store).catch((error) => error.code)).toBe("unavailable");
    expect(await pending.use("two", body(1), async (bytes) => bytes.length)).toBe(MIB);
    expect(await Promise.all(first)).toEqual(["unavailable", "unavailable"]);
    stored.resolve(1);
    await stored.promise;
    expect(await pending.use("one", body(1), async (bytes) => bytes.length)).toBe(MIB);
  });

  it("wait at most once as long, for room and for the result together", async () => {
    const max_wait_ms = 2_000;
    const pending = new PendingBodies(max_wait_ms);
    const full = (mib: number) => ({ chunks: [new Uint8Array(mib * MIB)], length: undefined });
    const stored = Promise.withResolvers<string>();
    const first = pending.use("one", full(63), () => stored.promise);
    const started_at = Date.now();
    const second = pending.use("one", full(2), async (_, deadline_ms) => deadline_ms);
    await until("half of the time is over", async () => Date.now() - started_at > max_wait_ms / 2);
    stored.resolve("stored");
    await first;
    expect((await second) - started_at).toBeLessThan(max_wait_ms * 1.25);
  });

  it("are not read until a body is stored", async () => {
    const pending = new PendingBodies(200);
    const allArrived = Promise.withResolvers<void>();
    let [arrived, read] = [0, 0];
    const store = () => {
      if (++arrived === 3) allArrived.resolve();
      return new Promise<never>(() => undefined);
    };
    async function* chunks() {
      for (; read < 100; read++) yield new Uint8Array(MIB);
    }
    const codeOf = (body: ReturnType<typeof chunks> | Uint8Array[]) =>
      pending.use("one", { chunks: body, length: undefined }, store).catch((error) => error.code);
    const stored = Array.from({ length: 3 }, () => codeOf(Array.from({ length: 21 }, () => new Uint8Array(MIB))));
    await allArrived.promise;
    const open = Array.from({ length: 8 }, () => codeOf(chunks()));
    expect(await Promise.all([...stored, ...open])).toEqual(Array(11).fill("unavailable"));
    expect(read).toBeLessThan(8);
  });
});
