import { randomBytes } from "node:crypto";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { TracePayloadRow, TraceRunRow, TreeUsage } from "../storage/schema.ts";
import {
  attachmentNames,
  findTraceRuns,
  insertPayloads,
  insertTraceRuns,
  payloadsOf,
  provisionalChildren,
  putAttachment,
  type TraceNode,
  traceNodes,
  updatePayload,
  updateTraceRun,
} from "../storage/traces.ts";
import {
  columnsOf,
  deriveColumns,
  hasSession,
  isPosted,
  markSession,
  mergeFields,
  newDraft,
  type Pricing,
  type Run,
  type RunDraft,
} from "./merge-run.ts";
import type { Attachment, RunOperation } from "./operation.ts";
import type { TraceSessions } from "./trace-sessions.ts";
import { invalidOrder, positionOf, startOf } from "./tree-position.ts";
import { treeUsage } from "./tree-usage.ts";

/** The limit of the original. */
const MAX_RUNS_OF_TRACE = 25_000;
const MAX_ATTACHMENTS_OF_RUN = 100;
/** About 340 levels. */
const MAX_ORDER_CHARS = 20_000;

/** The runs that an operation concerns: its own, its parent and its root. */
export const relatedIds = ({ id, fields }: RunOperation): string[] =>
  [id, fields.parent_run_id, rootIdOf(fields)].filter((related) => related !== undefined);

const rootIdOf = ({ dotted_order, trace_id }: RunOperation["fields"]): string | undefined =>
  dotted_order === undefined
    ? trace_id
    : dotted_order
        .slice(dotted_order.toLowerCase().indexOf("z") + 1)
        .slice(0, 36)
        .toLowerCase();

/** Applies the operations of one request to the runs of traces, within one transaction. */
export class TraceWriter {
  readonly #tx: Tx;
  readonly #tenant_id: string;
  readonly #sessions: TraceSessions;
  readonly #now_us: number;
  /** The stored runs that the request may change or refer to. */
  readonly #stored: Map<string, TraceRunRow>;
  readonly #payloads: Map<number, TracePayloadRow>;
  readonly #drafts = new Map<string, RunDraft>();

  constructor(
    tx: Tx,
    tenant_id: string,
    sessions: TraceSessions,
    now_ms: number,
    stored: TraceRunRow[],
    payloads: TracePayloadRow[],
  ) {
    this.#tx = tx;
    this.#tenant_id = tenant_id;
    this.#sessions = sessions;
    this.#now_us = now_ms * 1000;
    this.#stored = new Map(stored.map((run) => [run.run_id, run]));
    this.#payloads = new Map(payloads.map((payload) => [payload.run_no, payload]));
  }

  static async open(
    tx: Tx,
    tenant_id: string,
    sessions: TraceSessions,
    operations: readonly RunOperation[],
    attachments: readonly Attachment[],
    now_ms: number,
  ): Promise<TraceWriter> {
    const ids = new Set([...operations.flatMap(relatedIds), ...attachments.map(({ run_id }) => run_id)]);
    const stored = await findTraceRuns(tx, tenant_id, [...ids]);
    const changed = new Set(operations.map(({ id }) => id));
    const numbers = stored.filter(({ run_id }) => changed.has(run_id)).map(({ run_no }) => run_no);
    return new TraceWriter(tx, tenant_id, sessions, now_ms, stored, await payloadsOf(tx, numbers));
  }

  get drafts(): RunDraft[] {
    return [...this.#drafts.values()];
  }

  /** @throws ApiError when the operation contradicts the place of the run, or names an unknown session */
  apply(operation: RunOperation): void {
    const { id, fields } = operation;
    const session_no = this.#sessions.named(fields);
    const given_start = fields.start_time ?? (fields.dotted_order && startOf(fields.dotted_order.toUpperCase()));
    const draft = this.#draftOf(id) ?? newDraft(this.#tenant_id, id, given_start || fields.end_time || this.#now_us);
    const { run } = draft;
    const position = positionOf(id, fields, given_start || run.start_us, (run_id) => this.#runOf(run_id));
    const isPlaced = run.is_provisional === 0;
    if (position && position.dotted_order.length > MAX_ORDER_CHARS) throw invalidOrder("the run is nested too deeply");
    if (position && isPlaced && (position.trace_id !== run.trace_id || position.parent_run_id !== run.parent_run_id)) {
      // Without the parent, a position is a guess.
      if (!position.is_provisional) throw invalidOrder("a run cannot move to another trace or parent");
    } else if (position && !isPlaced) Object.assign(run, columnsOf(position));
    else if (operation.kind === "post" && !isPlaced && run.parent_run_id === null) run.is_provisional = 0;
    if (session_no !== undefined && (!isPosted(run) || !hasSession(run))) {
      run.experiment_no = session_no;
      markSession(run);
    } else if (run.experiment_no === 0) {
      run.experiment_no = this.#runOf(run.trace_id)?.experiment_no || this.#sessions.default_no();
    }
    mergeFields(draft, operation);
    this.#drafts.set(id, draft);
  }

  /**
   * Stores the runs: places the runs below new parents, and adds up tokens and costs of the traces.
   *
   * @param refuse called for each run that exceeds the limit of its trace
   */
  async store(pricing: Pricing, refuse: (run_id: string, error: ApiError) => void): Promise<void> {
    if (this.#drafts.size === 0) return;
    const children = await provisionalChildren(this.#tx, this.#tenant_id, [...this.#drafts.keys()]);
    const trace_ids = new Set([
      ...this.drafts.map(({ run }) => run.trace_id),
      ...children.map(({ trace_id }) => trace_id),
    ]);
    const nodes = new Map<string, TraceNode>();
    for (const node of await traceNodes(this.#tx, this.#tenant_id, [...trace_ids])) nodes.set(node.run_id, node);
    const before = new Map([...nodes].map(([run_id, node]) => [run_id, { ...node }]));
    for (const draft of this.drafts) {
      deriveColumns(draft, pricing);
      nodes.set(draft.run.run_id, draft.run);
    }
    placeProvisional(nodes);
    const traces = Map.groupBy(nodes.values(), ({ trace_id }) => trace_id);
    for (const [trace_id, runs] of traces) {
      this.#limitTrace(runs, refuse);
      takeSessionOfRoot(nodes.get(trace_id), runs);
      sumUsage(runs);
    }
    await this.#write(nodes, before);
  }

  /** @throws ApiError when the run is unknown or has too many attachments */
  async attach({ run_id, name, mime_type, data }: Attachment): Promise<void> {
    const run_no = this.#drafts.get(run_id)?.run_no ?? this.#stored.get(run_id)?.run_no;
    if (run_no === undefined) throw new ApiError("run_not_found");
    const names = await attachmentNames(this.#tx, run_no);
    if (!names.includes(name) && names.length >= MAX_ATTACHMENTS_OF_RUN)
      throw new ApiError("bad_trace_body", { reason: `A run has at most ${MAX_ATTACHMENTS_OF_RUN} attachments.` });
    const token = randomBytes(16).toString("hex");
    await putAttachment(this.#tx, { run_no, name, mime_type, token, data });
  }

  #runOf(run_id: string): Run | undefined {
    return this.#drafts.get(run_id)?.run ?? this.#stored.get(run_id);
  }

  #draftOf(run_id: string): RunDraft | undefined {
    const draft = this.#drafts.get(run_id);
    const stored = this.#stored.get(run_id);
    if (draft || !stored) return draft && structuredClone(draft);
    const { run_no, ...run } = stored;
    const { run_no: _, ...payload } = this.#payloads.get(run_no) as TracePayloadRow;
    return { run_no, run, payload, changes_usage: false };
  }

  #limitTrace(runs: TraceNode[], refuse: (run_id: string, error: ApiError) => void): void {
    for (const { run_id } of runs.splice(MAX_RUNS_OF_TRACE)) {
      const reason = `A trace has at most ${MAX_RUNS_OF_TRACE} runs.`;
      if (this.#drafts.get(run_id)?.run_no === undefined) refuse(run_id, new ApiError("bad_trace_body", { reason }));
      if (this.#drafts.get(run_id)?.run_no === undefined) this.#drafts.delete(run_id);
    }
  }

  async #write(nodes: Map<string, TraceNode>, before: Map<string, TraceNode>): Promise<void> {
    const created = this.drafts.filter(({ run_no }) => run_no === undefined);
    const changed = this.drafts.filter(({ run_no }) => run_no !== undefined);
    const numbers = await insertTraceRuns(
      this.#tx,
      created.map(({ run }) => run),
    );
    for (const draft of created) draft.run_no = numbers.get(draft.run.run_id);
    await insertPayloads(
      this.#tx,
      created.map(({ run_no, payload }) => ({ run_no: run_no as number, ...payload })),
    );
    for (const { run_no, run, payload } of changed) {
      await updateTraceRun(this.#tx, run, run);
      await updatePayload(this.#tx, { run_no: run_no as number, ...payload });
    }
    for (const [run_id, node] of nodes) {
      const old = before.get(run_id);
      if (!old || this.#drafts.has(run_id)) continue;
      const changes = Object.entries(node).filter(([column, value]) => old[column as keyof TraceNode] !== value);
      if (changes.length > 0)
        await updateTraceRun(this.#tx, { tenant_id: this.#tenant_id, run_id }, Object.fromEntries(changes));
    }
  }
}

/**
 * Moves runs whose parent is known now to their place, with all runs below them. Each provisional run is the root of a trace of its
 * own, and parents move before their children: so every run moves once.
 */
function placeProvisional(nodes: Map<string, TraceNode>): void {
  const waiting = new Set([...nodes.values()].filter((run) => run.is_provisional === 1 && run.parent_run_id !== null));
  const traces = Map.groupBy(nodes.values(), ({ trace_id }) => trace_id);
  const place = (run: TraceNode): void => {
    const path = [run];
    for (let next = nodes.get(run.parent_run_id as string); next && waiting.has(next); ) {
      waiting.delete(next);
      path.push(next);
      next = nodes.get(next.parent_run_id as string);
    }
    for (const moved of path.reverse()) movePart(moved, nodes.get(moved.parent_run_id as string), traces);
  };
  for (const run of waiting) {
    waiting.delete(run);
    place(run);
  }
}

function movePart(run: TraceNode, parent: TraceNode | undefined, traces: Map<string, TraceNode[]>): void {
  // A parent below the run itself would be a cycle.
  if (!parent || parent.dotted_order.includes(run.run_id)) return;
  const { trace_id, dotted_order } = run;
  const moved_order = `${parent.dotted_order}.${dotted_order}`;
  if (moved_order.length > MAX_ORDER_CHARS) return;
  for (const node of traces.get(trace_id) ?? []) {
    node.dotted_order = moved_order + node.dotted_order.slice(dotted_order.length);
    node.trace_id = parent.trace_id;
  }
  Object.assign(run, { is_root: 0, is_provisional: 0 });
}

/** Runs that arrived before their root, without a session, belong to the session of the root. */
function takeSessionOfRoot(root: TraceNode | undefined, runs: TraceNode[]): void {
  if (!root) return;
  for (const run of runs) if (!hasSession(run)) run.experiment_no = root.experiment_no;
}

function sumUsage(runs: TraceNode[]): void {
  const sums = treeUsage(runs);
  for (const run of runs) {
    const sum = sums.get(run.run_id);
    for (const [column, value] of Object.entries(sum ?? {})) run[`tree_${column}` as keyof TreeUsage] = value;
  }
}
