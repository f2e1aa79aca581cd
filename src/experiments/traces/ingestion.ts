import { setTimeout as delay } from "node:timers/promises";
import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError, type InvalidPart, InvalidRequestError } from "../../platform/errors.ts";
import type { FeedbackCreate } from "../contract/feedback/feedback.ts";
import { otlpErrorBody } from "../contract/traces/otlp-status.ts";
import { feedbackTarget, lockArrivals, newFeedbackRow, runsOfFeedback } from "../feedback/feedback.ts";
import { insertMissingConfigs } from "../feedback/feedback-configs.ts";
import {
  deleteFeedbackOf,
  feedbackOfRuns,
  insertFeedback,
  moveFeedback,
  takenFeedbackIds,
} from "../storage/feedback.ts";
import { rowKeysOf } from "../storage/runs.ts";
import type { FeedbackRow } from "../storage/schema.ts";
import type { TraceRunRow } from "../storage/traces/trace-schema.ts";
import { sessionNumbersOf } from "../storage/traces/traces.ts";
import { storeExperimentRows } from "./experiment-rows.ts";
import type { Pricing, RunDraft } from "./merge-run.ts";
import { type RunOperation, relatedIds, type TraceChanges } from "./operation.ts";
import { otlpResponse, readOtlpRequest } from "./otlp/otlp-request.ts";
import { toTraceChanges } from "./otlp/otlp-runs.ts";
import type { SpanExport } from "./otlp/span-export.ts";
import { OtlpError } from "./otlp/wire-fields.ts";
import { decompressed, type IngestRequest, MAX_REPORTED, readChanges } from "./read-changes.ts";
import { deleteSubtrees, endOperations, type TraceEnd } from "./run-tree.ts";
import { BodyTurns, MAX_FIELD_BYTES, removeTooLarge } from "./size-limits.ts";
import { TraceSessions } from "./trace-sessions.ts";
import { TraceWriter } from "./trace-writer.ts";
import type { PriceMaps } from "./usage/price-maps.ts";

/**
 * A transaction holds SQLite's write lock, which uploads and feedback need, too. One transaction of 25,000 runs held it for 4 s.
 * The pause is longer than the interval at which other writers retry.
 */
const MAX_RUNS_OF_TRANSACTION = 500;
const PAUSE_MS = 3;

/** Clients combine the changes of a run in one post and one patch. Each change of `extra` reads and writes all of it: up to 20 MB. */
const MAX_OPERATIONS_OF_RUN = 20;

/** An OTLP export request without its body. */
export interface SpansRequest {
  content_type: string;
  content_encoding: string;
  /** By lower-case name. */
  headers: Record<string, string | undefined>;
}

export interface IngestLimits {
  /** The maximum size of the unpacked body. */
  max_bytes: number;
  /** The time (`Date.now()`) after which the result is not sent. A request whose turn comes later is not stored. */
  deadline_ms: number;
}

interface SpansResponse {
  status: number;
  body: string;
}

/** The refused parts of a request, with the reasons. The other parts are stored. */
export interface IngestResult {
  /** Fields that do not match the contract. */
  invalid: InvalidPart[];
  /** Valid runs, feedback and attachments that could not be stored. */
  refused: InvalidPart[];
}

/**
 * Stores the runs of traces. Requests may be repeated, completely or in parts, and may arrive in any order, so runs are merged field by
 * field. All changes of a request are committed before the response.
 */
export class Ingestion {
  readonly #database: Database;
  readonly #turns = new BodyTurns();
  readonly #prices: PriceMaps;
  readonly #span_export: SpanExport | undefined;

  /** @param span_export receives the runs that have ended */
  constructor(database: Database, prices: PriceMaps, span_export?: SpanExport) {
    this.#database = database;
    this.#prices = prices;
    this.#span_export = span_export;
  }

  /** @throws ApiError when no part of the body can be read, or after the deadline */
  async ingest(
    caller: Caller,
    request: IngestRequest,
    sent: Uint8Array,
    { max_bytes, deadline_ms }: IngestLimits,
  ): Promise<IngestResult> {
    const unpack = () => decompressed(sent, request.content_encoding, max_bytes);
    return this.#turns.use(sent, deadline_ms, unpack, async (body) => {
      const changes = readChanges(request, body, max_bytes);
      const refused = await this.#store(caller, changes, request.is_of_agent);
      return { invalid: changes.refused, refused: refused.slice(0, MAX_REPORTED) };
    });
  }

  /**
   * Stores the spans of an OTLP export request as runs.
   *
   * @returns the response; its body is in base64, because it may be protobuf
   * @throws ApiError when the body cannot be unpacked, or after the deadline
   */
  async ingestSpans(
    caller: Caller,
    request: SpansRequest,
    sent: Uint8Array,
    { max_bytes, deadline_ms }: IngestLimits,
  ): Promise<SpansResponse> {
    const { content_type } = request;
    const respond = (status: number, body: Uint8Array) => ({ status, body: Buffer.from(body).toString("base64") });
    const unpack = () => decompressed(sent, request.content_encoding, max_bytes);
    return this.#turns.use(sent, deadline_ms, unpack, async (unpacked) => {
      try {
        const { changes, rejected } = toTraceChanges(readOtlpRequest(unpacked, content_type), request.headers);
        // The spans of these fields are stored, so they are reported without being counted as rejected.
        const removed = unpacked.byteLength > MAX_FIELD_BYTES ? removeTooLarge(changes) : [];
        const warnings = removed.slice(0, MAX_REPORTED).map(({ loc, msg }) => `${loc.slice(1).join(".")}: ${msg}`);
        const refused = await this.#store(caller, changes);
        const messages = [rejected.message, ...warnings, ...refused.map(({ msg }) => msg)];
        const message = messages.filter((text) => text !== "").join("; ");
        return respond(200, otlpResponse(content_type, { count: rejected.count + refused.length, message }));
      } catch (error) {
        if (!(error instanceof OtlpError)) throw error;
        return respond(error.status, otlpErrorBody(content_type, error.status, error.message));
      }
    });
  }

  /** Ends the open runs of a trace whose program exited without sending their end. */
  async end(caller: Caller, end: TraceEnd): Promise<void> {
    const none = { attachments: [], feedback: [] };
    const changesIn = async (tx: Tx) => ({ operations: await endOperations(tx, caller.tenant_id, end), ...none });
    await this.#commit(caller, changesIn, true);
  }

  /** Deletes runs with all runs below them. Unknown runs are ignored. */
  async delete({ tenant_id }: Caller, run_ids: string[]): Promise<void> {
    await this.#database.write((tx) => deleteSubtrees(tx, tenant_id, run_ids));
  }

  async #store(caller: Caller, changes: TraceChanges, is_of_agent = false): Promise<InvalidPart[]> {
    const counts = new Map<string, number>();
    const operations = changes.operations.filter(({ id }) => {
      counts.set(id, (counts.get(id) ?? 0) + 1);
      return (counts.get(id) as number) <= MAX_OPERATIONS_OF_RUN;
    });
    const refused = [...counts].flatMap(([id, count]) =>
      count > MAX_OPERATIONS_OF_RUN ? [refusal(id, `A request can change a run ${MAX_OPERATIONS_OF_RUN} times.`)] : [],
    );
    for (const part of partsOf({ ...changes, operations })) {
      if (part.begins_at > 0) await delay(PAUSE_MS);
      refused.push(...(await this.#commit(caller, async () => part, is_of_agent)));
    }
    return refused;
  }

  /** @param changesIn returns changes that may depend on the stored runs */
  async #commit(
    caller: Caller,
    changesIn: (tx: Tx) => Promise<TraceChanges>,
    is_of_agent: boolean,
  ): Promise<InvalidPart[]> {
    const pricing = await this.#prices.pricingOf(this.#database.read, caller.tenant_id);
    const { refused, drafts } = await writeUnique(this.#database, async (tx) =>
      storeChanges(tx, caller, await changesIn(tx), pricing),
    );
    this.#span_export?.export(drafts, is_of_agent);
    return refused;
  }
}

const refusal = (id: string, message: string): InvalidPart => ({
  loc: ["body", id],
  msg: `Value error, ${message}`,
  type: "value_error",
});

/** Splits changes into one part per transaction. Patches come last, because their values take precedence over those of posts. */
function* partsOf(changes: TraceChanges): Generator<TraceChanges & { begins_at: number }> {
  const operations = changes.operations.toSorted((a, b) => Number(a.kind === "patch") - Number(b.kind === "patch"));
  for (let begins_at = 0; ; begins_at += MAX_RUNS_OF_TRANSACTION) {
    const end = begins_at + MAX_RUNS_OF_TRANSACTION;
    const isLast = end >= operations.length;
    // Attachments and feedback refer to runs, so the last transaction stores them.
    const { attachments, feedback } = isLast ? changes : { attachments: [], feedback: [] };
    yield { operations: operations.slice(begins_at, end), attachments, feedback, begins_at };
    if (isLast) return;
  }
}

async function storeChanges(
  tx: Tx,
  caller: Caller,
  changes: TraceChanges,
  pricing: Pricing,
): Promise<{ refused: InvalidPart[]; drafts: RunDraft[] }> {
  const { operations, attachments, feedback } = changes;
  const refused: InvalidPart[] = [];
  const refuse = (id: string, { message }: ApiError) => refused.push(refusal(id, message));
  const attempt = async (id: string, work: () => void | Promise<void>) => {
    try {
      await work();
    } catch (error) {
      if (error instanceof InvalidRequestError)
        refused.push(...error.parts.map((part) => ({ ...part, loc: ["body", id, ...part.loc.slice(1)] })));
      else if (error instanceof ApiError) refuse(id, error);
      else throw error;
    }
  };
  await lockArrivals(tx, caller, feedback, new Set(operations.map(({ id }) => id)));
  const now_ms = await readNow(tx);
  const known = await sessionNumbersOf(tx, caller.tenant_id, [...new Set(operations.flatMap(relatedIds))]);
  const numbers = [...new Set(known.values())];
  const sessions = await TraceSessions.open(tx, caller, operations, numbers, needsDefault(operations, known), now_ms);
  const writer = await TraceWriter.open(tx, caller.tenant_id, sessions, operations, attachments, now_ms);
  for (const operation of operations) await attempt(operation.id, () => writer.apply(operation));
  const others = await writer.store(pricing, refuse);
  for (const attachment of attachments) await attempt(attachment.run_id, () => writer.attach(attachment));
  const targets = await storeExperimentRows(tx, sessions, writer.drafts);
  targets.push(...(await storeFeedback(tx, caller, feedback, now_ms, attempt)));
  // A run that has no session gets that of its root.
  const moved = others.filter(({ now, before }) => now.experiment_no !== before.experiment_no).map(({ now }) => now);
  const drafts = writer.drafts.map(({ run }) => run);
  targets.push(...(await attachFeedback(tx, caller.tenant_id, [...drafts, ...moved])));
  targets.push(...others.flatMap(({ now, before }) => [now.experiment_no, before.experiment_no]));
  // A run of a known session may have left it.
  await sessions.markDirty([...numbers, ...drafts.map(({ experiment_no }) => experiment_no), ...targets]);
  return { refused, drafts: writer.drafts };
}

/** Whether a new run names no session, and neither its parent nor its root is stored or in the request. */
function needsDefault(operations: readonly RunOperation[], known: ReadonlyMap<string, number>): boolean {
  const posted = new Set(operations.map(({ id }) => id));
  return operations.some((operation) => {
    const { session_id, session_name, address } = operation.fields;
    if (session_id !== undefined || session_name !== undefined || address !== undefined) return false;
    const [id, ...others] = relatedIds(operation) as [string, ...string[]];
    const hasRoot = others.some((other) => other !== id && (known.has(other) || posted.has(other)));
    return !known.has(id) && !hasRoot;
  });
}

/**
 * Stores the feedback of a request. Feedback with a known id is replaced, because clients may repeat a request.
 *
 * @returns the numbers of the sessions that have changed
 */
async function storeFeedback(
  tx: Tx,
  caller: Caller,
  feedback: readonly FeedbackCreate[],
  now_ms: number,
  attempt: (id: string, work: () => Promise<void>) => Promise<void>,
): Promise<number[]> {
  if (feedback.length === 0) return [];
  const runs = await runsOfFeedback(tx, caller, feedback);
  const ids = feedback.flatMap(({ id }) => id ?? []);
  const taken = new Map((await takenFeedbackIds(tx, ids)).map((row) => [row.feedback_id, row.experiment_no]));
  const changed: number[] = [];
  /** By id. If several items have the same id, the last one is stored. */
  const rows = new Map<string, FeedbackRow>();
  for (const input of feedback)
    await attempt(`feedback.${input.id}`, async () => {
      const target = await feedbackTarget(tx, caller, input, runs);
      const row = newFeedbackRow(caller.tenant_id, target, input, now_ms);
      const replaced_in = taken.get(row.feedback_id);
      if (replaced_in !== undefined) {
        if ((await deleteFeedbackOf(tx, caller.tenant_id, row.feedback_id)) === 0)
          throw new ApiError("feedback_exists", { feedback_id: row.feedback_id });
        taken.delete(row.feedback_id);
        changed.push(replaced_in);
      }
      rows.set(row.feedback_id, row);
      changed.push(row.experiment_no);
    });
  await insertFeedback(tx, [...rows.values()]);
  await insertMissingConfigs(
    tx,
    caller.tenant_id,
    feedback.filter(({ id }) => id !== undefined && rows.has(id)),
  );
  return changed;
}

/**
 * Assigns stored feedback to runs that arrive after it, because clients may send feedback before the run, or that have got another session.
 *
 * @returns the numbers of the sessions to which the reassigned feedback belonged before
 */
async function attachFeedback(
  tx: Tx,
  tenant_id: string,
  changed_runs: Pick<TraceRunRow, "run_id" | "experiment_no">[],
): Promise<number[]> {
  const runs = new Map(changed_runs.map((run) => [run.run_id, run]));
  const waiting = await feedbackOfRuns(tx, tenant_id, [...runs.keys()]);
  if (waiting.length === 0) return [];
  const rows = await rowKeysOf(tx, tenant_id, [...new Set(waiting.map(({ run_id }) => run_id as string))]);
  const changed: number[] = [];
  for (const { feedback_id, run_id, experiment_no, example_index } of waiting) {
    const session = runs.get(run_id as string)?.experiment_no as number;
    const row = rows.get(run_id as string);
    if (session === experiment_no && (row?.example_index ?? null) === example_index) continue;
    const key = { example_index: row?.example_index ?? null, repetition: row?.repetition ?? null };
    await moveFeedback(tx, { feedback_id, experiment_no: session, ...key });
    changed.push(experiment_no);
  }
  return changed;
}
