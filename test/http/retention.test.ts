import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { createProject } from "../support/project.ts";
import { parseSse } from "../support/sse.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("events that have expired on %s", (database) => {
  let api: Scenario;
  let run: Wire;
  beforeAll(async () => {
    api = await Scenario.start(database, { RESUMABLE_STREAM_TTL_SECONDS: "0.05" });
    run = await api.newRun(await api.newThread(), { assistant_id: "chain", input: { steps: ["in"] } });
    await api.join(run);
    await until("they are gone", async () => (await read("-1")).some(({ event }) => event === "gap"));
  });
  afterAll(() => api.stop());

  const read = async (last: string | undefined, query = "") => {
    const path = `/threads/${run.thread_id}/runs/${run.run_id}/stream${query}`;
    const headers: Record<string, string> = last === undefined ? {} : { "Last-Event-ID": last };
    return parseSse((await api.send("GET", path, undefined, headers)).text);
  };

  it.each(["", "?stream_mode=updates"])("are announced with one event, in place of them %s", async (query) => {
    const events = await read("2", query);
    expect(events.map(({ event }) => event)).toEqual(["gap"]);
    // metadata, values of input and of three steps.
    expect(events[0]).toMatchObject({ id: "5", data: { run_id: run.run_id, after: 2, until: 5 } });
  });

  it("are announced after the metadata to clients that read from the start", async () => {
    expect((await read("-1")).map(({ event }) => event)).toEqual(["metadata", "gap"]);
  });

  it("are not announced to clients that have received all of them", async () => {
    expect(await read("5")).toEqual([]);
  });

  it("leave the run's output", async () => {
    expect((await api.join(run)).steps).toEqual(["in", "a", "b", "c"]);
  });
});

describe.each(databases)("old runs on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database, { RESUMABLE_STREAM_TTL_SECONDS: "0.05", THREADMILL_RUN_RETENTION: "300ms" });
  });
  afterAll(() => api.stop());

  it("are deleted; their thread keeps its state and history, and runs again", async () => {
    const thread_id = await api.newThread();
    const runs = () => api.get(`/threads/${thread_id}/runs`) as Promise<Wire[]>;
    const { run_id } = await api.newRun(thread_id, { assistant_id: "chain", input: { steps: ["in"] } });
    await api.join({ thread_id, run_id });
    const history: Wire[] = await api.get(`/threads/${thread_id}/history`);
    expect(history.length).toBeGreaterThan(3);
    await until("the run is deleted", async () => (await runs()).length === 0);
    for (const path of ["", "/join", "/stream"])
      expect([path, (await api.send("GET", `/threads/${thread_id}/runs/${run_id}${path}`)).status]).toEqual([
        path,
        404,
      ]);
    expect(await api.get(`/threads/${thread_id}/history`)).toEqual(history);
    expect(await api.get(`/threads/${thread_id}`)).toMatchObject({ status: "idle" });
    const output = await api.post(`/threads/${thread_id}/runs/wait`, {
      assistant_id: "chain",
      input: { steps: ["on"] },
    });
    expect(output.steps).toEqual(["in", "a", "b", "c", "on", "a", "b", "c"]);
  });

  it("stay while events of the next run are based on their output", async () => {
    const thread_id = await api.newThread();
    const input = { steps: ["x".repeat(2_000)] };
    const first = await api.newRun(thread_id, { assistant_id: "chain", input });
    await api.join(first);
    const door = api.newDoor();
    const next = await api.newRun(thread_id, { assistant_id: "slow", input: { steps: [], door: door.path } });
    const other = await api.newRun(await api.newThread(), { assistant_id: "chain", input });
    await api.join(other);
    const status = async (run: Wire) => (await api.send("GET", `/threads/${run.thread_id}/runs/${run.run_id}`)).status;
    await until("a later run is deleted", async () => (await status(other)) === 404);
    expect(await status(first)).toBe(200);
    const stream = api.send("GET", `/threads/${thread_id}/runs/${next.run_id}/stream`);
    door.open();
    const values = parseSse((await stream).text).filter(({ event }) => event === "values");
    expect(values[0]?.data.steps[0]).toBe(input.steps[0]);
    await until("both are deleted", async () => (await status(first)) === 404 && (await status(next)) === 404);
  });

  it("stay while they are active", async () => {
    const thread_id = await api.newThread();
    const later = await api.newRun(thread_id, { assistant_id: "chain", input: { steps: [] }, after_seconds: 1 });
    expect((await api.join(later)).steps).toEqual(["a", "b", "c"]);
  });
});

it.each(databases)(
  "traffic with limited lifetimes reaches a steady size on %s",
  { timeout: 120_000 },
  async (database) => {
    const project = createProject({
      "langgraph.json": JSON.stringify({
        graphs: { chain: resolve(import.meta.dirname, "../graphs/scenarios/chain.ts:chain") },
        checkpointer: { ttl: { default_ttl: 0.002, sweep_interval_minutes: 0.001 } },
        store: { ttl: { default_ttl: 0.002, sweep_interval_minutes: 0.001 } },
      }),
    });
    const env = { RESUMABLE_STREAM_TTL_SECONDS: "0.05", THREADMILL_RUN_RETENTION: "100ms" };
    const api = await Scenario.start(database, env, { config: project.config });
    const body = { assistant_id: "chain", input: { steps: ["x".repeat(2_000)] } };
    const beside = openOn(api.service.database);
    const { read } = beside;
    const numberOf = async (query: string) =>
      Number((await read.first(sql<{ n: number }>`${sql.raw(query)}`.compile(read.k)))?.n);
    const sizes: number[] = [];
    for (let round = 0; round < ROUNDS[database]; round++) {
      for (let i = 0; i < 15; i++) {
        await api.post(`/threads/${randomUUID()}/runs/wait`, { ...body, if_not_exists: "create" });
        await api.post("/runs/wait", body);
        await api.send("PUT", "/store/items", {
          namespace: ["n", `${round}`],
          key: `${i}`,
          value: { text: "x".repeat(2_000) },
        });
      }
      await until("the lifetimes are over", async () => (await numberOf(ROWS)) === 0);
      sizes.push(await numberOf(BYTES[database]));
    }
    await beside.close();
    await api.stop();
    project.drop();
    console.log(
      `Size after each round on ${database}: ${sizes.map((size) => `${Math.round(size / 1024)} KB`).join(", ")}.`,
    );
    // A row of 100 bytes that each request left behind would need 36 KB.
    if (database === "sqlite") expect(sizes.at(-1)).toBeLessThan((sizes[0] as number) + 16_384);
  },
);

/** SQLite reuses the pages of deleted rows at once. Postgres does after a vacuum, so there the rows are counted only. */
const ROUNDS = { sqlite: 8, postgres: 2 };

/** Tables whose rows have a limited lifetime in the test above. */
const TRANSIENT = "threads runs run_events checkpoints checkpoint_values checkpoint_writes store_items".split(" ");
const ROWS = `select ${TRANSIENT.map((table) => `(select count(*) from ${table})`).join(" + ")} as n`;
const BYTES = {
  // Without the pages of deleted rows, which are used again: how many there are depends on how many rows wait for deletion at the same time.
  sqlite:
    "select (page_count - freelist_count) * page_size as n from pragma_page_count(), pragma_freelist_count(), pragma_page_size()",
  postgres: "select pg_database_size(current_database()) as n",
};
