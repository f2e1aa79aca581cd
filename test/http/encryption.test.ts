import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAX_ATTEMPTS } from "../../src/agent-server/engine/settlement/verdict.ts";
import { createLog, type Log } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { execute } from "../support/postgres.ts";
import { pythonSettings } from "../support/python.ts";
import { startService, type TestService } from "../support/service.ts";
import { parseSse } from "../support/sse.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";

const CONFIG = "test/graphs/encryption/langgraph.json";
/** In every text that must not be in the database. */
const MARKER = "heron-feather-4711";

const contextOf = (context: object) => ({
  "x-encryption-context": Buffer.from(JSON.stringify(context)).toString("base64"),
});
/** Slow machines must not fail the handlers. */
const INTERVALS = { auth_timeout_ms: 60_000, host_silent_ms: 20_000 };
const KEY = { ENCRYPTION_TEST_KEY: "first" };
const ACME = contextOf({ tenant: "acme" });

/** Returns a log that collects its lines, of all levels. */
function collecting(lines: string[]): Log {
  const add = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${inspect(fields, { depth: 9 })}`);
  const [debug, info, warn, error] = ["debug", "info", "warn", "error"].map(add);
  return Object.assign(createLog("silent"), { debug, info, warn, error }) as never;
}

describe.each(databases)("encryption.path on %s", (database) => {
  let service: TestService;
  const lines: string[] = [];

  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = ACME) => {
    const answer = await service.request(method, path, body, headers);
    if (answer.status >= 300) throw new Error(`${method} ${path} was answered ${answer.status}: ${answer.text}`);
    return answer.body;
  };
  const post = (path: string, body: unknown = {}, headers = ACME) => call("POST", path, body, headers);

  const start = async (
    config: string,
    env: Record<string, string>,
    on?: TestService["database"],
    intervals = INTERVALS,
  ) => {
    const python = await pythonSettings();
    return startService({
      database,
      ...(on && { on }),
      config,
      env: { ...python, ...env },
      tracing: true,
      intervals,
      log: collecting(lines),
    });
  };
  /** Starts another service on the same database. */
  const restart = async (env: Record<string, string>, config = CONFIG) => {
    await service.threadmill.stop();
    service = await start(config, env, service.database);
  };
  beforeAll(async () => {
    service = await start(CONFIG, KEY);
  });
  afterAll(() => service?.stop());

  /** All bytes that the databases of the service have on disk, or all rows of Postgres. */
  const stored = async (): Promise<string> => {
    const { data_dir, url } = service.database;
    const files = readdirSync(data_dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes("type-schemas"))
      .map((entry) => readFileSync(join(entry.parentPath, entry.name)).toString("latin1"));
    if (!url) return files.join("\n");
    const tables = await execute(
      url,
      "select schemaname || '.' || quote_ident(tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')",
    );
    for (const { name } of tables)
      files.push(JSON.stringify(await execute(url, `select t::text as row from ${name} t`)));
    return files.join("\n");
  };

  it("returns what it stored, and stores nothing readable", async () => {
    const { thread_id } = await post("/threads", { metadata: { secret: MARKER, owner: "ada" } });
    const body = {
      assistant_id: "chat",
      input: { text: MARKER },
      metadata: { note: MARKER },
      config: { configurable: { hint: MARKER } },
      stream_mode: ["values", "custom"],
      stream_resumable: true,
    };
    const streamed = await service.request("POST", `/threads/${thread_id}/runs/stream`, body, ACME);
    const events = parseSse(streamed.text);
    expect(events.find(({ event }) => event === "custom")?.data).toEqual({ progress: MARKER });
    const values = { text: MARKER, answer: `answer to ${MARKER}` };
    expect(events.at(-1)?.data).toEqual(values);
    expect(await call("GET", `/threads/${thread_id}`)).toMatchObject({
      values,
      metadata: { secret: MARKER, owner: "ada", graph_id: "chat" },
    });
    const [run] = await call("GET", `/threads/${thread_id}/runs`);
    expect(run).toMatchObject({ metadata: { note: MARKER }, kwargs: { input: { text: MARKER } } });
    const { previews } = await call("GET", `/app/api/runs/previews?run_id=${run.run_id}`);
    expect(previews).toEqual([{ run_id: run.run_id, input: MARKER, output: values.answer }]);
    const replayed = await service.request("GET", `/threads/${thread_id}/runs/${run.run_id}/stream`, undefined, {
      ...ACME,
      "last-event-id": "-1",
    });
    expect(parseSse(replayed.text).map(({ data }) => data)).toEqual(events.map(({ data }) => data));
    const history = await post(`/threads/${thread_id}/history`, { limit: 10 });
    expect(history[0]).toMatchObject({ values, metadata: { note: MARKER, source: "loop" } });
    expect(await post(`/threads/${thread_id}/history`, { metadata: { source: "input" } })).toHaveLength(1);
    expect((await call("GET", "/store/items?namespace=notes&key=last")).value).toEqual({ note: MARKER });
    const { assistant_id } = await post("/assistants", {
      graph_id: "chat",
      context: { persona: MARKER },
      metadata: { secret: MARKER },
    });
    expect(await call("PATCH", `/assistants/${assistant_id}`, { metadata: { more: MARKER } })).toMatchObject({
      context: { persona: MARKER },
      metadata: { secret: MARKER, more: MARKER },
    });
    const cron = await post("/runs/crons", { assistant_id: "chat", schedule: "0 0 1 1 *", input: { text: MARKER } });
    expect(cron.payload).toMatchObject({ input: { text: MARKER } });
    await call("PUT", "/store/items", { namespace: ["box"], key: "a", value: { secret: MARKER, owner: "ada" } });
    // What the handlers leave readable can be searched for; what they encrypt cannot.
    const search = async (metadata: object) => (await post("/threads/search", { metadata })).length;
    expect([await search({ owner: "ada" }), await search({ secret: MARKER })]).toEqual([1, 0]);
    expect(await post("/store/items/search", { namespace_prefix: ["box"], filter: { owner: "ada" } })).toMatchObject({
      items: [{ value: { secret: MARKER } }],
    });
    // What graphs store has the context of the request that created their run.
    const storage = openOn(service.database);
    const items = await storage.read.all(storage.read.k.selectFrom("store_items").select("value"));
    await storage.close();
    expect(items.map(({ value }) => JSON.parse(value).__encryption_context__)).toEqual(
      items.map(() => ({
        model: "store",
        field: "value",
        metadata: { user: "local", tenant: "acme" },
        is_object: true,
      })),
    );
    const bytes = await stored();
    expect(bytes).toContain("acme");
    expect(bytes).toContain("ada");
    expect(bytes.includes(MARKER)).toBe(false);
    expect(bytes.includes(Buffer.from(MARKER).toString("base64").slice(2, 20))).toBe(false);
  });

  it("covers interrupts, state updates, errors, and graphs in JavaScript", async () => {
    const { thread_id } = await post("/threads");
    const run = { assistant_id: "asks", input: { text: MARKER } };
    const paused = await post(`/threads/${thread_id}/runs/wait`, run);
    expect(paused.__interrupt__[0].value).toEqual({ question: MARKER });
    const thread = await call("GET", `/threads/${thread_id}`);
    expect(Object.values(thread.interrupts).flat()).toMatchObject([{ value: { question: MARKER } }]);
    const resumed = { assistant_id: "asks", command: { resume: `yes ${MARKER}` } };
    expect((await post(`/threads/${thread_id}/runs/wait`, resumed)).answer).toBe(`${MARKER}, yes ${MARKER}`);
    await post(`/threads/${thread_id}/state`, { values: { answer: `changed ${MARKER}` } });
    expect((await call("GET", `/threads/${thread_id}/state`)).values.answer).toBe(`changed ${MARKER}`);
    const { thread_id: copy_id } = await post(`/threads/${thread_id}/copy`);
    expect((await call("GET", `/threads/${copy_id}/state`)).values.answer).toBe(`changed ${MARKER}`);
    const failed = await post("/runs/wait", { assistant_id: "chat", input: { answer: MARKER } });
    expect(failed.__error__).toMatchObject({ error: "KeyError" });
    const { thread_id: failing_id } = await post("/threads");
    const refused = await post(`/threads/${failing_id}/runs/wait`, { assistant_id: "fails", input: { text: MARKER } });
    expect(refused.__error__).toEqual({ error: "ValueError", message: `cannot answer ${MARKER}` });
    expect((await call("GET", `/threads/${failing_id}`)).error).toMatchObject({ message: `cannot answer ${MARKER}` });
    expect(await post("/runs/wait", { assistant_id: "js", input: { steps: [MARKER] } })).toMatchObject({
      steps: [MARKER, "a", "b", "c"],
    });
    expect((await stored()).includes(MARKER)).toBe(false);
  });

  it("stores the encryption context with the values, so that other requests can read them", async () => {
    const { thread_id } = await post("/threads", { metadata: { secret: MARKER } }, contextOf({ tenant: "other" }));
    const read = await call("GET", `/threads/${thread_id}`, undefined, {});
    expect(read.metadata.secret).toBe(MARKER);
    const invalid = await service.request("POST", "/threads", {}, { "x-encryption-context": "???" });
    expect(invalid).toMatchObject({ status: 422, body: { detail: expect.stringContaining("X-Encryption-Context") } });
  });

  it("refuses a request whose values cannot be encrypted, and stores nothing of it", async () => {
    const body = { thread_id: crypto.randomUUID(), metadata: { secret: MARKER } };
    const refused = await service.request("POST", "/threads", body, contextOf({ tenant: "unknown" }));
    expect(refused).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining("thread.metadata cannot be encrypted (LookupError)") },
    });
    expect((await service.request("GET", `/threads/${body.thread_id}`)).status).toBe(404);
  });

  it("ends a run whose values cannot be encrypted, with the state from before", async () => {
    const { thread_id } = await post("/threads");
    await post(`/threads/${thread_id}/runs/wait`, { assistant_id: "chat", input: { text: MARKER } });
    const before = await call("GET", `/threads/${thread_id}/state`);
    const failed = await post(`/threads/${thread_id}/runs/wait`, {
      assistant_id: "chat",
      input: { text: `unencryptable ${MARKER}` },
    });
    expect(failed.__error__).toMatchObject({
      error: "EncryptionError",
      message: expect.stringContaining("cannot be encrypted (OverflowError)"),
    });
    expect((await call("GET", `/threads/${thread_id}/runs`))[0].status).toBe("error");
    expect(await call("GET", `/threads/${thread_id}`)).toMatchObject({ status: "error", values: before.values });
    const answered = await post(`/threads/${thread_id}/runs/wait`, { assistant_id: "chat", input: { text: MARKER } });
    expect(answered.answer).toBe(`answer to ${MARKER}`);
    // The handler's message contains the value, so that it is logged at the level debug only.
    expect(lines.some((line) => line.startsWith("debug") && line.includes("Refused"))).toBe(true);
  });

  it("accepts metadata with the keys of its own format", async () => {
    const metadata = { __encryption_context__: { tenant: "x" }, ___encryption_context__: 1 };
    const { thread_id } = await post("/threads", { metadata });
    expect((await call("GET", `/threads/${thread_id}`)).metadata).toEqual(metadata);
  });

  it("restores what a rollback undoes", async () => {
    const { thread_id } = await post("/threads", { metadata: { secret: MARKER } });
    await post(`/threads/${thread_id}/runs/wait`, { assistant_id: "chat", input: { text: MARKER } });
    const before = await call("GET", `/threads/${thread_id}`);
    const body = { assistant_id: "asks", input: { text: MARKER }, metadata: { note: MARKER }, after_seconds: 60 };
    const { run_id } = await post(`/threads/${thread_id}/runs`, body);
    expect((await call("GET", `/threads/${thread_id}`)).status).toBe("busy");
    // Another caller, whose encryption context differs.
    const other = contextOf({ tenant: "other" });
    await post(`/threads/${thread_id}/runs/${run_id}/cancel?wait=true&action=rollback`, undefined, other);
    expect(await call("GET", `/threads/${thread_id}`)).toEqual(before);
    expect(await call("GET", `/threads/${thread_id}/runs`)).toHaveLength(1);
  });

  it("refuses to start without its handlers, and requests whose handlers do not return in time", async () => {
    const { thread_id } = await post("/threads", { metadata: { secret: MARKER } });
    await service.threadmill.stop();
    const startOn = (config: string) => start(config, {}, service.database);
    await expect(startOn("test/graphs/encryption/plain.json")).rejects.toThrow(/^The database contains values/);
    await expect(startOn("test/graphs/encryption/broken.json")).rejects.toThrow(
      /^The module specified in encryption\.path/,
    );
    service = await start(CONFIG, KEY, service.database, { ...INTERVALS, auth_timeout_ms: 3_000 });
    const stuck = contextOf({ tenant: "stuck" });
    expect(await service.request("POST", "/threads", { metadata: { secret: MARKER } }, stuck)).toMatchObject({
      status: 503,
      body: { detail: expect.stringContaining("encryption module") },
    });
    await restart(KEY);
    expect((await call("GET", `/threads/${thread_id}`)).metadata.secret).toBe(MARKER);
  });

  it("reads its values after a restart; with a wrong key, requests and runs fail, and others do not", async () => {
    const { thread_id } = await post("/threads", { metadata: { secret: MARKER } });
    await post(`/threads/${thread_id}/runs/wait`, { assistant_id: "chat", input: { text: MARKER } });
    const { thread_id: deleted_id } = await post("/threads", { metadata: { secret: MARKER } });
    const delayed = await post(`/threads/${thread_id}/runs`, {
      assistant_id: "chat",
      input: { text: MARKER },
      after_seconds: 1,
    });
    await restart({ ENCRYPTION_TEST_KEY: "second" });
    expect(await service.request("GET", `/threads/${thread_id}`, undefined, ACME)).toMatchObject({
      status: 422,
      body: { detail: expect.stringMatching(/cannot be decrypted \(PermissionError\)/) },
    });
    // The state of the thread cannot be read either.
    const failed = await service.request("POST", `/threads/${thread_id}/runs/wait`, { assistant_id: "chat" }, ACME);
    expect(failed).toMatchObject({ status: 422, body: { detail: expect.stringContaining("PermissionError") } });
    // Whatever cannot be read can be deleted.
    await call("DELETE", `/threads/${deleted_id}`);
    const output = await post("/runs/wait", { assistant_id: "chat", input: { text: MARKER } });
    expect(output.answer).toBe(`answer to ${MARKER}`);
    await until("the run with a wrong key has failed", async () => {
      const text = await stored();
      return text.includes("EncryptionError");
    });
    await restart(KEY);
    expect((await call("GET", `/threads/${thread_id}`)).metadata.secret).toBe(MARKER);
    expect((await call("GET", `/threads/${thread_id}/runs/${delayed.run_id}`)).status).toBe("error");
    expect((await stored()).includes(MARKER)).toBe(false);
  });

  it("ends lost runs that cannot be decrypted, without stopping others", async () => {
    const lost: { thread_id: string; run_id: string }[] = [];
    const statusOf = async (run_id: string) => {
      const storage = openOn(service.database);
      const query = storage.read.k.selectFrom("runs").select("status").where("run_id", "=", run_id);
      const row = await storage.read.first(query);
      await storage.close();
      return row?.status;
    };
    for (const _ of ["too many attempts", "cancelled"]) {
      const { thread_id } = await post("/threads", { metadata: { secret: MARKER } });
      await post(`/threads/${thread_id}/runs/wait`, { assistant_id: "chat", input: { text: MARKER } });
      const body = { assistant_id: "chat", input: { text: MARKER }, after_seconds: 600 };
      lost.push(await post(`/threads/${thread_id}/runs`, body));
    }
    await service.threadmill.stop();
    // As after a `kill -9`: claimed by a process that no longer exists.
    const storage = openOn(service.database);
    const claimed = { status: "running" as const, lease_until: 0 };
    for (const [n, { run_id }] of lost.entries()) {
      const end = n === 0 ? { attempt: MAX_ATTEMPTS } : { cancel_action: "interrupt" as const };
      const query = storage.read.k.updateTable("runs").set({ ...claimed, ...end });
      await storage.write((tx) => tx.run(query.where("run_id", "=", run_id)));
    }
    await storage.close();
    service = await start(CONFIG, { ENCRYPTION_TEST_KEY: "second" }, service.database);
    const statuses = () => Promise.all(lost.map(({ run_id }) => statusOf(run_id)));
    await until("both lost runs have ended", async () => !(await statuses()).includes("running"));
    const output = await post("/runs/wait", { assistant_id: "chat", input: { text: MARKER } });
    expect(output.answer).toBe(`answer to ${MARKER}`);
    await restart(KEY);
    const read = async ({ thread_id, run_id }: (typeof lost)[number]) => ({
      run: (await call("GET", `/threads/${thread_id}/runs/${run_id}`)).status,
      thread: await call("GET", `/threads/${thread_id}`),
      joined: await call("GET", `/threads/${thread_id}/runs/${run_id}/join`),
    });
    const kept = { values: { text: MARKER, answer: `answer to ${MARKER}` }, metadata: { secret: MARKER } };
    const failed = { error: "EncryptionError", message: expect.stringContaining("PermissionError") };
    expect(await Promise.all(lost.map(read))).toMatchObject([
      { run: "error", thread: { ...kept, status: "error" }, joined: { __error__: failed } },
      { run: "interrupted", thread: { ...kept, status: "idle" } },
    ]);
    for (const { thread_id } of lost)
      expect(await post(`/threads/${thread_id}/runs/wait`, { assistant_id: "chat", input: { text: "again" } })).toEqual(
        {
          text: "again",
          answer: "answer to again",
        },
      );
  });

  it("logs nothing of what it encrypts", () => {
    expect(lines.join()).toContain("value cannot be decrypted");
    expect(lines.join()).toContain("error: 'ValueError'");
    const refused = (line: string) => line.startsWith("debug value cannot be encrypted") && line.includes("Refused");
    expect(lines.filter((line) => line.includes(MARKER) && !refused(line))).toEqual([]);
  });
});

describe.each(databases)("encryption.path that is added later on %s", (database) => {
  let service: TestService;
  const start = async (config: string) => {
    const env = await pythonSettings();
    const on = service?.database;
    service = await startService({ database, ...(on && { on }), config, env, intervals: INTERVALS });
  };
  afterAll(() => service?.stop());

  it("reads the values from before, and encrypts them when they are written again", async () => {
    await start("test/graphs/encryption/plain.json");
    const created = await service.request("POST", "/threads", { metadata: { note: "from before" } });
    const path = `/threads/${created.body.thread_id}`;
    const paused = await service.request("POST", `${path}/runs/wait`, { assistant_id: "asks", input: { text: "x" } });
    expect(paused.body.__interrupt__).toHaveLength(1);
    await service.threadmill.stop();
    await start(CONFIG);
    const resumed = { assistant_id: "asks", command: { resume: MARKER } };
    expect((await service.request("POST", `${path}/runs/wait`, resumed)).body.answer).toBe(`x, ${MARKER}`);
    const thread = await service.request("GET", path);
    expect(thread.body).toMatchObject({ metadata: { note: "from before" }, values: { answer: `x, ${MARKER}` } });
    expect((await service.request("POST", `${path}/history`, {})).body.length).toBeGreaterThan(2);
    const storage = openOn(service.database);
    const rows = await storage.read.all(storage.read.k.selectFrom("threads").selectAll());
    await storage.close();
    expect(rows[0]?.metadata).toContain('"note":"encrypted:');
    expect(JSON.stringify(rows)).not.toContain(MARKER);
  });
});

describe.each(databases)("encryption.path that is changed while the service runs on %s", (database) => {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-encryption-"));
  const handlers = join(folder, "handlers.py");
  let service: TestService;
  afterAll(async () => {
    await service?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("stores and returns nothing while its module cannot be loaded, and is used again once it can", async () => {
    for (const name of ["graphs.py", "handlers.py"])
      copyFileSync(join(import.meta.dirname, "../graphs/encryption", name), join(folder, name));
    const config = join(folder, "langgraph.json");
    const encryption = { path: "./handlers.py:encryption" };
    writeFileSync(config, JSON.stringify({ graphs: { chat: "./graphs.py:chat" }, encryption, dependencies: ["."] }));
    const env = { ...KEY, ...(await pythonSettings()) };
    service = await startService({ database, config, env, intervals: INTERVALS });
    const create = () => service.request("POST", "/threads", { metadata: { secret: MARKER } }, ACME);
    const read = (id: string) => service.request("GET", `/threads/${id}`);
    const { thread_id } = (await create()).body;
    const working = readFileSync(handlers, "utf8");
    const reloadWith = async (text: string) => {
      writeFileSync(handlers, text);
      return service.threadmill.reload(service.config);
    };
    expect(await reloadWith(`raise RuntimeError("The keys are not available.")\n${working}`)).toEqual({
      "encryption.path": expect.stringContaining("could not be loaded"),
    });
    const unavailable = { status: 503, body: { detail: expect.stringContaining("encryption module") } };
    expect(await create()).toMatchObject(unavailable);
    expect(await read(thread_id)).toMatchObject(unavailable);
    expect((await service.request("GET", "/ok")).status).toBe(200);
    expect(await reloadWith(working)).toEqual({});
    expect((await read(thread_id)).body.metadata).toEqual({ secret: MARKER });
    expect((await create()).status).toBe(200);
    expect((await service.request("POST", "/threads/count", {})).body).toBe(2);
    await reloadWith(working.replace('PREFIX = "encrypted:"', 'PREFIX = "changed:"'));
    expect((await create()).status).toBe(200);
    const storage = openOn(service.database);
    const rows = await storage.read.all(storage.read.k.selectFrom("threads").select("metadata"));
    await storage.close();
    expect(rows.filter(({ metadata }) => metadata.includes('"changed:'))).toHaveLength(1);
  });
});
