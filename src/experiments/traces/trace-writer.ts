import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newAttachmentSecret } from "../attachment-links.ts";
import type { TracePayloadRow, TraceRunRow } from "../storage/traces/trace-schema.ts";
import {
  attachmentNames,
  findNodes,
  findTraceRuns,
  insertPayloads,
  insertTraceRuns,
  payloadsOf,
  provisionalChildren,
  putAttachment,
  type TraceNode,
  traceNodes,
  traceSizes,
  tracesWithChildren,
  updatePayload,
  updateTraceRun,
} from "../storage/traces/traces.ts";
import {
  columnsOf,
  deriveColumns,
  hasSession,
  inheritFromRoot,
  isPosted,
  markSession,
  mergeFields,
  newDraft,
  type Pricing,
  type Run,
  type RunDraft,
} from "./merge-run.ts";
import { type Attachment, type RunOperation, relatedIds } from "./operation.ts";
import type { TraceSessions } from "./trace-sessions.ts";
import {
  ancestorIdsOf,
  invalidOrder,
  MAX_ORDER_CHARS,
  moveRunsBelow,
  placeProvisional,
  positionOf,
  startOf,
} from "./tree-position.ts";
import { addUsageToAncestors, sumUsage } from "./usage/tree-usage.ts";

/** LangSmith has the same limit. */
const MAX_RUNS_OF_TRACE = 25_000;
const MAX_ATTACHMENTS_OF_RUN = 100;

/** A stored run that a request has changed without naming it. */
export interface ChangedNode {
  now: TraceNode;
  before: TraceNode;
}

type Refuse = (run_id: string, error: ApiError) => void;

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

  /** @throws ApiError when the position in the operation is invalid or contradicts the stored position, or the session is missing */
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
      // The stored position is kept if the parent is unknown, or if the request also moves the root and, with it, this run.
      const root = this.#drafts.get(run.trace_id);
      const isMoving = position.parent_run_id === run.parent_run_id && root && this.#placeOf(root);
      if (!position.is_provisional && !isMoving)
        throw invalidOrder("the trace and the parent of a run cannot be changed");
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
   * Stores the runs, moves runs to their place below parents that have arrived, and sums the tokens and costs of the traces.
   *
   * @param refuse called for each run that exceeds the limit of its trace
   * @returns the other runs that have changed
   */
  async store(pricing: Pricing, refuse: Refuse): Promise<ChangedNode[]> {
    if (this.#drafts.size === 0) return [];
    for (const draft of this.drafts) deriveColumns(draft, pricing);
    const children = await provisionalChildren(this.#tx, this.#tenant_id, [...this.#drafts.keys()]);
    const placed = this.drafts.flatMap((draft) => this.#placeOf(draft) ?? []);
    const isWaiting = this.drafts.some(({ run }) => run.is_provisional === 1 && run.parent_run_id !== null);
    const isMoving = children.length > 0 || placed.length > 0 || isWaiting;
    const nodes = new LoadedNodes();
    const changed = [...this.drafts.map(({ run }) => run), ...children, ...placed.map(({ before }) => before)];
    const trace_ids = new Set(changed.map(({ trace_id }) => trace_id));
    const whole = isMoving ? trace_ids : await this.#addUsage(nodes, refuse);
    nodes.add(await traceNodes(this.#tx, this.#tenant_id, [...whole]));
    for (const { run } of this.drafts) nodes.now.set(run.run_id, run);
    for (const { run, before } of placed) moveRunsBelow(run, before, nodes.now.values());
    if (isMoving) placeProvisional(nodes.now);
    for (const [trace_id, runs] of Map.groupBy(nodes.now.values(), (run) => run.trace_id)) {
      if (!isMoving && !whole.has(trace_id)) continue;
      this.#limitTrace(runs, refuse);
      inheritFromRoot(nodes.now.get(trace_id), runs);
      sumUsage(runs);
    }
    return this.#write(nodes);
  }

  /** The position of a provisional run before the request, if the request gives it another one. */
  #placeOf({ run }: RunDraft): { run: Run; before: TraceRunRow } | undefined {
    const before = this.#stored.get(run.run_id);
    return before?.is_provisional === 1 && before.dotted_order !== run.dotted_order ? { run, before } : undefined;
  }

  /**
   * Adds the usage of the drafts to the runs above them.
   *
   * @param nodes receives the runs above the drafts
   * @returns the traces for which this is not possible, because their sums depend on other runs
   */
  async #addUsage(nodes: LoadedNodes, refuse: Refuse): Promise<Set<string>> {
    const traces = Map.groupBy(this.drafts, ({ run }) => run.trace_id);
    const sizes = await traceSizes(this.#tx, this.#tenant_id, [...traces.keys()]);
    // Whether the session or the thread of a root changes: the runs below the root inherit both.
    const isOther = ({ run }: RunDraft) => {
      const stored = this.#stored.get(run.run_id);
      return stored?.experiment_no !== run.experiment_no || stored.thread_id !== run.thread_id;
    };
    const isWhole = (trace_id: string) => {
      const root = this.#drafts.get(trace_id);
      return !sizes.has(trace_id) || (root !== undefined && isOther(root));
    };
    const whole = new Set([...traces.keys()].filter(isWhole));
    const parts = [...traces].filter(([trace_id]) => !whole.has(trace_id));
    const drafts = parts.flatMap(([, each]) => each);
    const created = drafts.filter(({ run_no }) => run_no === undefined).map(({ run }) => run.run_id);
    const trace_ids = parts.map(([trace_id]) => trace_id);
    for (const id of await tracesWithChildren(this.#tx, this.#tenant_id, trace_ids, created)) whole.add(id);
    const above = new Set(drafts.flatMap(({ run }) => ancestorIdsOf(run.dotted_order)));
    nodes.add(
      await findNodes(
        this.#tx,
        this.#tenant_id,
        [...above].filter((id) => !this.#drafts.has(id)),
      ),
    );
    for (const [trace_id, each] of parts) {
      if (whole.has(trace_id)) continue;
      const room = MAX_RUNS_OF_TRACE - (sizes.get(trace_id) ?? 0);
      for (const { run } of each.filter(({ run_no }) => run_no === undefined).slice(Math.max(0, room)))
        this.#refuse(run.run_id, refuse);
      const runs = each.map(({ run }) => run).filter(({ run_id }) => this.#drafts.has(run_id));
      const findRun = (id: string) => {
        const run = this.#drafts.get(id)?.run ?? nodes.now.get(id);
        return run?.trace_id === trace_id ? run : undefined;
      };
      inheritFromRoot(findRun(trace_id), runs);
      if (!addUsageToAncestors(runs, this.#stored, findRun)) whole.add(trace_id);
    }
    return whole;
  }

  /** @throws ApiError when the run is unknown or has too many attachments */
  async attach({ run_id, name, mime_type, data }: Attachment): Promise<void> {
    const run_no = this.#drafts.get(run_id)?.run_no ?? this.#stored.get(run_id)?.run_no;
    if (run_no === undefined) throw new ApiError("run_not_found");
    const names = await attachmentNames(this.#tx, run_no);
    if (!names.includes(name) && names.length >= MAX_ATTACHMENTS_OF_RUN)
      throw new ApiError("bad_trace_body", { reason: `A run can have at most ${MAX_ATTACHMENTS_OF_RUN} attachments.` });
    await putAttachment(this.#tx, { run_no, name, mime_type, token: newAttachmentSecret(), data });
  }

  #runOf(run_id: string): Run | undefined {
    return this.#drafts.get(run_id)?.run ?? this.#stored.get(run_id);
  }

  #draftOf(run_id: string): RunDraft | undefined {
    const draft = this.#drafts.get(run_id);
    const stored = this.#stored.get(run_id);
    // A copy of the objects, whose values are immutable: with their texts, 500 changes of a run of 20 MB would take 10 s.
    if (draft || !stored) return draft && { ...draft, run: { ...draft.run }, payload: { ...draft.payload } };
    const { run_no, ...run } = stored;
    const { run_no: _, ...payload } = this.#payloads.get(run_no) as TracePayloadRow;
    return { run_no, run, payload, was_ended: run.end_us !== null, changes_usage: false };
  }

  #limitTrace(runs: TraceNode[], refuse: Refuse): void {
    for (const { run_id } of runs.splice(MAX_RUNS_OF_TRACE))
      if (this.#drafts.get(run_id)?.run_no === undefined) this.#refuse(run_id, refuse);
  }

  #refuse(run_id: string, refuse: Refuse): void {
    const reason = `A trace can have at most ${MAX_RUNS_OF_TRACE} runs.`;
    refuse(run_id, new ApiError("bad_trace_body", { reason }));
    this.#drafts.delete(run_id);
  }

  async #write(nodes: LoadedNodes): Promise<ChangedNode[]> {
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
    const others = [...nodes.now.values()].filter(({ run_id }) => !this.#drafts.has(run_id));
    const written = await writeNodes(this.#tx, this.#tenant_id, others, nodes.before);
    return written.map((now) => ({ now, before: nodes.before.get(now.run_id) as TraceNode }));
  }
}

/**
 * Stores the columns that have changed.
 *
 * @returns the runs that have changed
 */
export async function writeNodes(
  tx: Tx,
  tenant_id: string,
  nodes: TraceNode[],
  before: ReadonlyMap<string, TraceNode>,
): Promise<TraceNode[]> {
  const changed: TraceNode[] = [];
  for (const node of nodes) {
    const old = before.get(node.run_id);
    if (!old) continue;
    const changes = Object.entries(node).filter(([column, value]) => old[column as keyof TraceNode] !== value);
    if (changes.length === 0) continue;
    await updateTraceRun(tx, { tenant_id, run_id: node.run_id }, Object.fromEntries(changes));
    changed.push(node);
  }
  return changed;
}

/** Stored runs that the request may change, in their current state and in their state before the request. */
class LoadedNodes {
  readonly now = new Map<string, TraceNode>();
  readonly before = new Map<string, TraceNode>();

  add(nodes: TraceNode[]): void {
    for (const node of nodes) {
      this.now.set(node.run_id, node);
      this.before.set(node.run_id, { ...node });
    }
  }
}
