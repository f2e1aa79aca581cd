import type { Caller } from "../../platform/contract/caller.ts";
import { type Database, readNow, type Tx, writeUnique } from "../../platform/database/database.ts";
import { ApiError, type InvalidPart } from "../../platform/errors.ts";
import { sessionNumbersOf } from "../storage/traces.ts";
import { storeExperimentRows } from "./experiment-rows.ts";
import { attachFeedback, storeFeedback } from "./feedback.ts";
import type { Pricing } from "./merge-run.ts";
import type { RunOperation, TraceChanges } from "./operation.ts";
import { otlpErrorBody, otlpResponse, readOtlpRequest } from "./otlp/otlp-request.ts";
import { toTraceChanges } from "./otlp/otlp-runs.ts";
import { OtlpError } from "./otlp/wire-fields.ts";
import { loadPrices, type Prices } from "./prices.ts";
import { decompressed, type IngestRequest, readChanges } from "./read-changes.ts";
import { TraceSessions } from "./trace-sessions.ts";
import { relatedIds, TraceWriter } from "./trace-writer.ts";

const MAX_REPORTED = 100;

/** An OTLP export request without its body. */
export interface SpansRequest {
  content_type: string;
  content_encoding: string;
  /** By names in lower case. */
  headers: Record<string, string | undefined>;
}

interface SpansResponse {
  status: number;
  body: string;
}

/** The reasons for what was refused. The rest of the request is stored. */
export interface IngestResult {
  /** Fields that do not match the contract. */
  invalid: InvalidPart[];
  /** Runs that contradict what is stored. */
  refused: InvalidPart[];
}

/**
 * Stores the runs of traces. A request may arrive again, as a whole or in parts and in any order: runs are merged field by field.
 * All that a request changes is committed in one transaction before the response.
 */
export class Ingestion {
  readonly #database: Database;
  #prices: Promise<Prices> | undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * @param max_bytes the limit of the unpacked body
   * @throws ApiError when the body cannot be read as a whole
   */
  async ingest(caller: Caller, request: IngestRequest, body: Uint8Array, max_bytes: number): Promise<IngestResult> {
    const changes = readChanges(request, body, max_bytes);
    const refused = await this.#store(caller, changes);
    return { invalid: changes.refused.slice(0, MAX_REPORTED), refused: refused.slice(0, MAX_REPORTED) };
  }

  /**
   * Stores the spans of an OTLP export request as runs.
   *
   * @returns the response; its body is in base64, because it may be protobuf
   * @throws ApiError when the body cannot be unpacked
   */
  async ingestSpans(
    caller: Caller,
    request: SpansRequest,
    sent: Uint8Array,
    max_bytes: number,
  ): Promise<SpansResponse> {
    const { content_type } = request;
    const respond = (status: number, body: Uint8Array) => ({ status, body: Buffer.from(body).toString("base64") });
    try {
      const spans = readOtlpRequest(decompressed(sent, request.content_encoding, max_bytes), content_type);
      const { changes, rejected } = toTraceChanges(spans, request.headers);
      const refused = await this.#store(caller, changes);
      const message = [rejected.message, ...refused.map(({ msg }) => msg)].filter((text) => text !== "").join("; ");
      return respond(200, otlpResponse(content_type, { count: rejected.count + refused.length, message }));
    } catch (error) {
      if (!(error instanceof OtlpError)) throw error;
      return respond(error.status, otlpErrorBody(content_type, error.status, error.message));
    }
  }

  async #store(caller: Caller, changes: TraceChanges): Promise<InvalidPart[]> {
    this.#prices ??= loadPrices();
    const prices = await this.#prices;
    const pricing = { prices, map: prices.mapOf([]) };
    return writeUnique(this.#database, (tx) => storeChanges(tx, caller, changes, pricing));
  }
}

async function storeChanges(tx: Tx, caller: Caller, changes: TraceChanges, pricing: Pricing): Promise<InvalidPart[]> {
  const { operations, attachments, feedback } = changes;
  const refused: InvalidPart[] = [];
  const refuse = (id: string, { message }: ApiError) =>
    refused.push({ loc: ["body", id], msg: `Value error, ${message}`, type: "value_error" });
  const attempt = async (id: string, work: () => void | Promise<void>) => {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refuse(id, error);
    }
  };
  const now_ms = await readNow(tx);
  const known = await sessionNumbersOf(tx, caller.tenant_id, [...new Set(operations.flatMap(relatedIds))]);
  const numbers = [...new Set(known.values())];
  const sessions = await TraceSessions.open(tx, caller, operations, numbers, needsDefault(operations, known), now_ms);
  const writer = await TraceWriter.open(tx, caller.tenant_id, sessions, operations, attachments, now_ms);
  // A value of a patch takes precedence over one of a post of the same run, whatever their order.
  for (const operation of operations.toSorted((a, b) => Number(a.kind === "patch") - Number(b.kind === "patch")))
    await attempt(operation.id, () => writer.apply(operation));
  await writer.store(pricing, refuse);
  for (const attachment of attachments) await attempt(attachment.run_id, () => writer.attach(attachment));
  await storeExperimentRows(tx, sessions, writer.drafts);
  const targets = await storeFeedback(tx, caller, feedback, now_ms, attempt);
  targets.push(...(await attachFeedback(tx, caller.tenant_id, writer.drafts)));
  await sessions.markDirty([...writer.drafts.map(({ run }) => run.experiment_no), ...targets]);
  return refused;
}

/** Whether a run names no session, and neither does the root of its trace. */
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
