import { v7 } from "uuid";
import { drive, type Load, sleep } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { queryBench } from "../postgres.ts";
import { serverOf, type Target } from "../target.ts";

const EVENTS_PER_RUN = 100;
/** Writers of the stored events, each with its part of them. */
const WRITERS = 2;
/** Of the runs, one in so many has events that have expired. */
const EXPIRED = 10;
const RETENTION_S = 86_400;
const CLIENTS = 4;
const POLL_MS = 500;

const title = "100 million stored events (quick: 100,000)";

/** Runs before and after 100 events each of a million ended runs are stored, and while the events of every tenth are deleted as expired. */
export const manyEvents: Measurement = {
  name: "many-events",
  only_postgres: true,
  minutes: () => 60,
  figures: [
    { key: "empty_p50_ms", label: "create + wait, 4 at once, in an empty database: p50, ms" },
    { key: "full_p50_ms", label: `... with ${title}: p50, ms` },
    { key: "full_ratio", label: "... relative to the empty database", goal: { against: "itself", max: 1.5 } },
    { key: "replay_ms", label: `${title}: the stream of an ended run with 100 of them, ms` },
    { key: "deleted_per_s", label: `${title}: deletion of 10 million expired ones, events/s` },
    { key: "deleting_p50_ms", label: "... create + wait at the same time: p50, ms" },
    { key: "deleting_p99_ms", label: "... p99, ms" },
  ],
  async measure(start, { stored_events, load_seconds }) {
    const seconds = load_seconds * 2;
    const runs = stored_events / EVENTS_PER_RUN;
    const kept = { RESUMABLE_STREAM_TTL_SECONDS: String(RETENTION_S * 20) };
    const empty = await measureRuns(await start(kept), seconds, async (server) => {
      const body = {
        assistant_id: "events",
        input: { count: EVENTS_PER_RUN, in_turns: true },
        stream_mode: ["custom"],
      };
      await server.send("POST", `/threads/${v7()}/runs/wait`, { body: { ...body, if_not_exists: "create" } });
    });
    const part = runs / WRITERS;
    await Promise.all(Array.from({ length: WRITERS }, (_, n) => store(n * part + 1, (n + 1) * part)));
    await queryBench("analyze run_events, runs");
    let replay_ms = 0;
    const full = await measureRuns(await start(kept), seconds, async (server) => {
      const [row] = await queryBench(`select thread_id from runs where run_id = '${idOf(runs / 2)}'`);
      const read = () => server.send("GET", `/threads/${row?.thread_id}/runs/${idOf(runs / 2)}/stream`);
      await read();
      replay_ms = (await drive(1, { calls: 50 }, read)).p50_ms;
    });
    const started_at = performance.now();
    const deleting = await measureRuns(
      await start({ RESUMABLE_STREAM_TTL_SECONDS: String(RETENTION_S) }),
      untilDeleted(),
    );
    const deleted_s = (performance.now() - started_at) / 1000;
    return {
      empty_p50_ms: empty.p50_ms,
      full_p50_ms: full.p50_ms,
      full_ratio: full.p50_ms / empty.p50_ms,
      replay_ms,
      deleted_per_s: stored_events / EXPIRED / deleted_s,
      deleting_p50_ms: deleting.p50_ms,
      deleting_p99_ms: deleting.p99_ms,
    };
  },
};

/** Runs of clients that wait for each, for a time or until a promise is fulfilled. */
async function measureRuns(
  started: Target,
  until: number | Promise<void>,
  before?: (server: ReturnType<typeof serverOf>) => Promise<void>,
): Promise<Load> {
  await using target = started;
  await before?.(serverOf(target));
  const run = () => target.run("step", { text: "hello" }, v7());
  await drive(CLIENTS, { calls: CLIENTS * 5 }, run);
  if (typeof until === "number") return await drive(CLIENTS, { seconds: until }, run);
  let isOver = false;
  void until.then(() => {
    isOver = true;
  });
  return await drive(CLIENTS, { isOver: () => isOver }, run);
}

const idOf = (n: number): string => `01800000-0000-7000-8000-${n.toString(16).padStart(12, "0")}`;

/** Stores copies of the run with custom events, and of its events. Every tenth ended two days ago. */
async function store(from: number, to: number): Promise<void> {
  await queryBench(`
    set synchronous_commit = off;
    do $$
    declare columns text;
    begin
      select string_agg(quote_ident(column_name), ', ') into columns from information_schema.columns
        where table_name = 'runs' and column_name not in ('seq', 'run_id', 'ended_at');
      execute format('
        with run as (select * from runs where graph_id = ''events'' and run_id not like ''01800000-%%'' limit 1)
        insert into runs (run_id, ended_at, %1$s)
        select ''01800000-0000-7000-8000-'' || lpad(to_hex(n), 12, ''0''),
          now_ms() - case when n %% ${EXPIRED} = 0 then ${2 * RETENTION_S * 1000} else 0 end, %1$s
        from run, generate_series(${from}, ${to}) n', columns);
      select string_agg(quote_ident(column_name), ', ') into columns from information_schema.columns
        where table_name = 'run_events' and column_name <> 'run_id';
      execute format('
        with event as (select * from run_events where run_id not like ''01800000-%%'' and run_id in (
          select run_id from runs where graph_id = ''events'' and run_id not like ''01800000-%%'' limit 1)
          and seq <= ${EVENTS_PER_RUN} order by seq)
        insert into run_events (run_id, %1$s)
        select ''01800000-0000-7000-8000-'' || lpad(to_hex(n), 12, ''0''), %1$s
        from generate_series(${from}, ${to}) n cross join lateral (select * from event where n > 0 offset 0) as each', columns);
    end $$`);
}

async function untilDeleted(): Promise<void> {
  const left = `select from runs where expired_seq is null and ended_at < now_ms() - ${RETENTION_S * 1000} limit 1`;
  while ((await queryBench(left)).length > 0) await sleep(POLL_MS);
}
