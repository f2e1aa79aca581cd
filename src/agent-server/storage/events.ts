import { type ExpressionBuilder, sql } from "kysely";
import { nowMs, type Schema, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { TextDelta } from "../../platform/lib/text-delta.ts";
import { EVENT_COLUMNS, type EventRow, type StoredEvent, unfold } from "./event-reader.ts";
import type { RunEventRow, RunKey, ThreadRunKey } from "./schema.ts";

/** The delta base of an event: an earlier event of the run, or (`base_seq` 0) the output of another run. */
export interface EventBase {
  base_seq: number;
  base_run_id: string | null;
}

export interface NewEvent extends StoredEvent {
  stored?: EventBase & TextDelta;
}

const WHOLE = { base_seq: null, base_run_id: null, copies: null };

function rowOf({ seq, event, data, stored }: NewEvent): EventRow {
  if (!stored) return { seq, event, data, ...WHOLE };
  const { added, ...base } = stored;
  return { seq, event, data: added, ...base };
}

/** Appends to a run's events. The caller holds the fence and numbers the events. */
export async function insertEvents(tx: Tx, run: RunKey, given: readonly NewEvent[]): Promise<void> {
  const { run_id, tenant_id } = run;
  const events: NewEvent[] = [];
  for (const event of given) {
    const base = event.stored?.base_run_id;
    events.push(base && !(await lockOutput(tx, base)) ? { ...event, stored: undefined } : event);
  }
  if (tx.dialect.name === "sqlite") {
    // On SQLite one compiled statement per row is faster than building one statement for all rows.
    for (const event of events) await tx.run(insertQuery(tx, { run_id, tenant_id, ...rowOf(event) }));
    return;
  }
  const rows = events.map((event) => ({ run_id, tenant_id, ...rowOf(event), created_at: nowMs }));
  for (let at = 0; at < rows.length; at += 1000)
    await tx.enqueue(
      tx.k
        .insertInto("run_events")
        .values(rows.slice(at, at + 1000))
        .compile(),
    );
}

/** Whether the run whose output is a delta base still exists; locks its row until the commit. */
async function lockOutput(tx: Tx, run_id: string): Promise<boolean> {
  const query = tx.k.selectFrom("runs").select("seq").where("run_id", "=", run_id);
  return (await tx.first(tx.dialect.forShare(query))) !== undefined;
}

const insertQuery = prepared<Omit<RunEventRow, "created_at">, unknown>((k, p) =>
  k.insertInto("run_events").values({
    run_id: p("run_id"),
    tenant_id: p("tenant_id"),
    seq: p("seq"),
    event: p("event"),
    data: p("data"),
    base_seq: p("base_seq"),
    base_run_id: p("base_run_id"),
    copies: p("copies"),
    created_at: nowMs,
  }),
);

/** Called before a run is deleted: stores events of other runs whole if they are deltas of its output. */
export async function releaseOutput(tx: Tx, { run_id }: Pick<ThreadRunKey, "run_id">): Promise<void> {
  const rows = await tx.all(
    tx.k
      .selectFrom("run_events")
      .select([...EVENT_COLUMNS, "run_id"])
      .where("base_run_id", "=", run_id),
  );
  for (const row of rows) {
    for await (const { data } of unfold(tx, [row]))
      await tx.run(
        tx.k
          .updateTable("run_events")
          .set({ data, ...WHOLE })
          .where("run_id", "=", row.run_id)
          .where("seq", "=", row.seq),
      );
  }
}

/** Returns the highest sequence number of a run's events; 0 without events. */
export async function lastEventSeq(tx: Tx, run_id: string): Promise<number> {
  const row = await tx.first(lastQuery(tx, { run_id }));
  return row?.seq ?? 0;
}

const lastQuery = prepared<{ run_id: string }, { seq: number | null }>((k, p) =>
  k
    .selectFrom("run_events")
    .select((s) => s.fn.max("seq").as("seq"))
    .where("run_id", "=", p("run_id")),
);

const endedBefore = (older_than_ms: number) =>
  sql<boolean>`ended_at is not null and ended_at < now_ms() - ${older_than_ms}`;

/**
 * Deletes the events of up to `limit` runs that ended longer ago than the given age, and stores the last `seq` in each run.
 *
 * @returns the number of runs
 */
export async function deleteExpiredEvents(tx: Tx, older_than_ms: number, limit: number): Promise<number> {
  const expired = await tx.all(
    tx.k
      .selectFrom("runs")
      .select("run_id")
      .where(endedBefore(older_than_ms))
      .where("expired_seq", "is", null)
      .orderBy("ended_at")
      .limit(limit),
  );
  if (expired.length === 0) return 0;
  const ids = expired.map(({ run_id }) => run_id);
  const last = sql<number>`coalesce((select max(seq) from run_events where run_events.run_id = runs.run_id), 0)`;
  // Another process can do the same at the same time. After it has committed, there are no events.
  await tx.run(
    tx.k.updateTable("runs").set({ expired_seq: last }).where("run_id", "in", ids).where("expired_seq", "is", null),
  );
  await tx.run(tx.k.deleteFrom("run_events").where("run_id", "in", ids));
  return ids.length;
}

/**
 * Deletes the records of up to `limit` runs that ended longer ago than the given age and whose events have been deleted. With `temporary`,
 * these are stateless runs whose threads were deleted at their end; otherwise, all other runs, whose threads keep their state and history.
 * A run stays while its output is the base of events of the next run.
 *
 * @returns the number of runs
 */
export async function deleteEndedRuns(
  tx: Tx,
  { temporary, older_than_ms }: { temporary: boolean; older_than_ms: number },
  limit: number,
): Promise<number> {
  const old = await tx.all(
    tx.dialect.skipLocked(
      tx.k
        .selectFrom("runs")
        .select("seq")
        .where(endedBefore(older_than_ms))
        .where("expired_seq", "is not", null)
        .where("temporary", "=", temporary ? 1 : 0)
        .where(isNoBase)
        .limit(limit),
    ),
  );
  if (old.length === 0) return 0;
  const seqs = old.map(({ seq }) => seq);
  // Checked again: until the lock, another transaction could store an event that is based on the output.
  return tx.run(tx.k.deleteFrom("runs").where("seq", "in", seqs).where(isNoBase));
}

const isNoBase = (e: ExpressionBuilder<Schema, "runs">) =>
  e.not(
    e.exists(e.selectFrom("run_events as event").select("event.seq").whereRef("event.base_run_id", "=", "runs.run_id")),
  );
