import { nowMs, type Tx } from "./database.ts";
import { prepared } from "./prepared.ts";
import type { RunEventRow } from "./schema.ts";

/** An event as readers get it: the name of its type, and its data as JSON text. */
export interface StoredEvent {
  seq: number;
  event: string;
  data: string;
}

/** Appends to a run's events. The caller has passed the fence and numbers the events. */
export async function insertEvents(
  tx: Tx,
  run: { run_id: string; tenant_id: string },
  events: readonly StoredEvent[],
): Promise<void> {
  if (tx.dialect.name === "sqlite") {
    // One compiled statement per row is faster here than building one statement for all rows.
    const { run_id, tenant_id } = run;
    for (const event of events) await tx.run(insertQuery(tx, { run_id, tenant_id, ...event }));
    return;
  }
  const rows = events.map((event) => ({ run_id: run.run_id, tenant_id: run.tenant_id, ...event, created_at: nowMs }));
  for (let at = 0; at < rows.length; at += 1000)
    await tx.run(tx.k.insertInto("run_events").values(rows.slice(at, at + 1000)));
}

const insertQuery = prepared<Omit<RunEventRow, "created_at">, unknown>((k, p) =>
  k.insertInto("run_events").values({
    run_id: p("run_id"),
    tenant_id: p("tenant_id"),
    seq: p("seq"),
    event: p("event"),
    data: p("data"),
    created_at: nowMs,
  }),
);

interface Page {
  run_id: string;
  after: number;
  limit: number;
}

/** The events after a sequence number, in order. */
export const readEvents = (tx: Tx, page: Page): Promise<StoredEvent[]> => tx.all(readQuery(tx, page));

const readQuery = prepared<Page, StoredEvent>((k, p) =>
  k
    .selectFrom("run_events")
    .select(["seq", "event", "data"])
    .where("run_id", "=", p("run_id"))
    .where("seq", ">", p("after"))
    .orderBy("seq")
    .limit(p("limit")),
);

/** The highest sequence number of a run's events; 0 when it has none. */
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
