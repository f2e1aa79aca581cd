import type { Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import { applyDelta } from "../../platform/lib/text-delta.ts";
import type { RunEventRow } from "./schema.ts";

/** An event of a run: its type, and its data as JSON text. */
export interface StoredEvent {
  seq: number;
  event: string;
  data: string;
}

export const EVENT_COLUMNS = ["seq", "event", "data", "base_seq", "base_run_id", "copies"] as const;
export type EventRow = Pick<RunEventRow, (typeof EVENT_COLUMNS)[number]>;

/** Maximum length of the text of a batch, in UTF-16 code units. A slow reader needs two or three times as much memory. */
const BATCH_LENGTH = 100_000;
/** Number of rows of the first page, and of the largest one. */
const FIRST_PAGE = 100;
const MAX_PAGE = 1_000;

/** Minimum length of deltas and their bases, in UTF-16 code units. */
export const LONG = 1_000;

/** Collects events up to {@link BATCH_LENGTH}, at least one. */
export class Batch {
  readonly events: StoredEvent[] = [];
  #length = 0;

  /** @returns whether there is room for more */
  add(event: StoredEvent): boolean {
    this.events.push(event);
    this.#length += event.data.length;
    return this.#length < BATCH_LENGTH;
  }
}

/** The last long text of each type, with the number of its event: the possible bases of the next event. */
type LastTexts = Map<string, { seq: number; text: string }>;

export class EventReader {
  readonly #run_id: string;
  #last: LastTexts = new Map();
  #limit = FIRST_PAGE;

  constructor(run_id: string) {
    this.#run_id = run_id;
  }

  /** Returns the events after a sequence number, up to about {@link BATCH_LENGTH}; empty at the end. */
  async after(tx: Tx, seq: number): Promise<StoredEvent[]> {
    const rows = await tx.all(pageQuery(tx, { run_id: this.#run_id, after: seq, limit: this.#limit }));
    const before = await this.#chainsBefore(tx, rows);
    const batch = new Batch();
    for await (const event of unfold(tx, [...before, ...rows], this.#last))
      if (event.seq > seq && !batch.add(event)) break;
    const got = batch.events.length;
    // Adapts the page to the batch, so that few rows are read and discarded.
    this.#limit = got === this.#limit ? Math.min(4 * got, MAX_PAGE) : Math.max(1, got);
    // A reader at the end may wait for a long time, so its texts are released.
    if (got === 0) this.#last = new Map();
    return batch.events;
  }

  /** Returns the missing delta bases of a page's events, back to events that are stored whole. */
  async #chainsBefore(tx: Tx, rows: readonly EventRow[]): Promise<EventRow[]> {
    const before: EventRow[] = [];
    const known = new Set([0, ...rows.map(({ seq }) => seq)]);
    const isMissing = ({ base_seq }: EventRow) => base_seq !== null && !known.has(base_seq);
    if (rows.filter(isMissing).every(({ base_seq }) => textOf(this.#last, base_seq) !== undefined)) return before;
    // The reader received some events from the live feed, so the known texts are outdated.
    this.#last = new Map();
    for (const { base_seq } of rows) {
      if (base_seq === null || known.has(base_seq)) continue;
      for (const row of await tx.all(chainQuery(tx, { run_id: this.#run_id, seq: base_seq }))) {
        if (!known.has(row.seq)) before.push(row);
        known.add(row.seq);
      }
    }
    return before.sort((a, b) => a.seq - b.seq);
  }
}

/**
 * Restores the data of events from their deltas, in order. Each base must come earlier or be in `last`.
 *
 * @throws Error if a base is missing: the log is corrupt
 */
export async function* unfold(
  tx: Tx,
  rows: readonly EventRow[],
  last: LastTexts = new Map(),
): AsyncGenerator<StoredEvent> {
  for (const { seq, event, data, base_seq, base_run_id, copies } of rows) {
    let text = data;
    if (base_seq !== null) {
      const base = base_run_id === null ? textOf(last, base_seq) : await outputOf(tx, base_run_id);
      if (typeof base !== "string")
        throw new Error(`The event log is corrupt: event ${seq} is based on an event or output that is missing.`);
      text = applyDelta(base, { copies: copies ?? "", added: data });
    }
    if (text.length >= LONG) last.set(event, { seq, text });
    yield { seq, event, data: text };
  }
}

const textOf = (last: LastTexts, seq: number | null): string | undefined =>
  [...last.values()].find((one) => one.seq === seq)?.text;

async function outputOf(tx: Tx, run_id: string): Promise<string | null | undefined> {
  const row = await tx.first(tx.k.selectFrom("runs").select("output").where("run_id", "=", run_id));
  return row?.output;
}

const pageQuery = prepared<{ run_id: string; after: number; limit: number }, EventRow>((k, p) =>
  k
    .selectFrom("run_events")
    .select(EVENT_COLUMNS)
    .where("run_id", "=", p("run_id"))
    .where("seq", ">", p("after"))
    .orderBy("seq")
    .limit(p("limit")),
);

/** Selects an event and its chain of delta bases. */
const chainQuery = prepared<{ run_id: string; seq: number }, EventRow>((k, p) =>
  k
    .withRecursive("chain", (w) =>
      w
        .selectFrom("run_events")
        .select(EVENT_COLUMNS)
        .where("run_id", "=", p("run_id"))
        .where("seq", "=", p("seq"))
        .unionAll((u) =>
          u
            .selectFrom("run_events as e")
            .innerJoin("chain", "chain.base_seq", "e.seq")
            .select(EVENT_COLUMNS.map((column) => `e.${column}` as const))
            .where("e.run_id", "=", p("run_id")),
        ),
    )
    .selectFrom("chain")
    .select(EVENT_COLUMNS),
);
