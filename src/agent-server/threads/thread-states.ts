import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { cleanJsonText } from "../../platform/lib/json/json.ts";
import { filterOf } from "../auth/grants.ts";
import { type AgentContext, queryGraph } from "../context.ts";
import type { CheckpointRef } from "../contract/run-schemas.ts";
import type { HistorySearch, StateUpdate } from "../contract/thread-state.ts";
import type {
  CheckpointKey,
  GraphInUse,
  StateUpdate as GraphUpdate,
  StagedUpdate,
  StateSummary,
} from "../graph-hosts/host.ts";
import { findAssistant } from "../storage/assistants.ts";
import { findCheckpoint, findHead } from "../storage/checkpoints/checkpoints.ts";
import { insertCheckpoint, insertWrites } from "../storage/checkpoints/inserts.ts";
import { hasPartIn } from "../storage/checkpoints/run-writes.ts";
import type { ThreadRow } from "../storage/schema.ts";
import { findThread, hasActiveRun, lockThread, recomputeStatus, settleThread } from "../storage/threads.ts";
import { selectState } from "./select-state.ts";

/** The state of a thread that has no graph yet, because no run has been created on it. */
const EMPTY_STATE = { values: {}, next: [], tasks: [], created_at: null, checkpoint: null, parent_checkpoint: null };

/** Maximum number of attempts for a change that conflicts with a concurrent one. */
export const MAX_TRIES = 3;

/** An update with this node name makes LangGraph copy the checkpoint: the copy is a sibling, not a child. */
const COPY = "__copy__";

/** The record of a thread after a change, and the version of the thread from which it was computed. */
interface ComputedRecord {
  base: string | undefined;
  updated_at: number;
  /** Undefined if the thread has no graph and therefore no state. */
  state: StateSummary | undefined;
}

/** Reads the state and history of threads, and updates the state. States are returned as JSON text. */
export class ThreadStates {
  readonly #context: AgentContext;

  constructor(context: AgentContext) {
    this.#context = context;
  }

  async get(
    caller: Caller,
    thread_id: string,
    at: CheckpointRef,
    { subgraphs, select }: { subgraphs: boolean; select?: readonly string[] | undefined },
  ): Promise<string> {
    const thread = await requireThread(this.#context.database.read, caller, thread_id);
    const checkpoint = keyOf(thread_id, at);
    const graph = await this.#graphOf(thread);
    await requireCheckpoint(this.#context.database.read, thread_id, checkpoint);
    if (!graph) return JSON.stringify(selectState(EMPTY_STATE, select));
    return queryGraph(this.#context, { kind: "state", graph, checkpoint, subgraphs, select });
  }

  /** Returns the states of a thread, newest first, in pages of JSON texts separated by commas. */
  async *history(
    caller: Caller,
    thread_id: string,
    { limit, before, metadata, checkpoint = {}, select }: HistorySearch,
  ): AsyncGenerator<Uint8Array, Uint8Array> {
    const thread = await requireThread(this.#context.database.read, caller, thread_id);
    const graph = await this.#graphOf(thread);
    if (!graph) return new Uint8Array();
    const query = { kind: "history" as const, graph, checkpoint: keyOf(thread_id, checkpoint), metadata, select };
    for (let rest = limit, end = before; ; ) {
      const page = await queryGraph(this.#context, { ...query, before: end, limit: rest });
      if (page.before === undefined) return page.states;
      yield page.states;
      rest -= page.count;
      end = page.before;
    }
  }

  /** Creates a checkpoint after the newest, or after the given one. Fails while a run is active. */
  async update(caller: Caller, thread_id: string, body: StateUpdate): Promise<{ checkpoint: CheckpointKey }> {
    const { values, as_node, checkpoint = {}, checkpoint_id } = body;
    const at = { ...checkpoint, checkpoint_id: checkpoint.checkpoint_id ?? checkpoint_id };
    return this.#apply(caller, thread_id, at, [[{ values, as_node }]]);
  }

  async replay(caller: Caller, thread_id: string, supersteps: GraphUpdate[][]): Promise<void> {
    await this.#apply(caller, thread_id, {}, supersteps);
  }

  /**
   * Computes the thread's record as if a run had not existed; without a `state` if it is the same. A transaction cannot wait for the graph, so {@link storeIfUnchanged}
   * checks that the thread has not changed since.
   */
  async recordWithout(caller: Caller, thread_id: string, run_id: string): Promise<ComputedRecord> {
    const { database } = this.#context;
    const thread = await requireThread(database.read, caller, thread_id);
    const base = await findHead(database.read, thread_id);
    const isIndependent = base !== undefined && !(await hasPartIn(database.read, { thread_id, run_id }, base));
    const graph = isIndependent ? undefined : await this.#graphOf(thread);
    const state =
      graph &&
      (await queryGraph(this.#context, { kind: "summary", graph, checkpoint: { thread_id }, without: run_id }));
    return { base, updated_at: thread.updated_at, state };
  }

  /** Stores a computed record unless the thread has changed. The caller must have locked the thread. */
  async storeIfUnchanged(
    tx: Tx,
    { tenant_id }: Caller,
    thread_id: string,
    { base, updated_at, state }: ComputedRecord,
  ): Promise<boolean> {
    const thread = await findThread(tx, tenant_id, thread_id);
    if (thread?.updated_at !== updated_at || (await findHead(tx, thread_id)) !== base) return false;
    if (state) await this.#write(tx, thread_id, state);
    // Shows concurrent deletions that their records were computed with this run.
    else await recomputeStatus(tx, thread_id);
    return true;
  }

  async #apply(
    caller: Caller,
    thread_id: string,
    at: CheckpointRef,
    supersteps: GraphUpdate[][],
  ): Promise<{ checkpoint: CheckpointKey }> {
    const checkpoint = keyOf(thread_id, at);
    for (let tries = 1; ; tries++) {
      const thread = await requireThread(this.#context.database.read, caller, thread_id);
      if (thread.status === "busy") throw new ApiError("thread_busy");
      const graph = await this.#graphOf(thread);
      if (!graph) throw new ApiError("thread_without_graph", { thread_id });
      await requireCheckpoint(this.#context.database.read, thread_id, checkpoint);
      const staged = await queryGraph(this.#context, { kind: "update", graph, checkpoint, supersteps });
      const isCopy = supersteps.some((updates) => updates.some(({ as_node }) => as_node === COPY));
      if (await this.#store(caller, checkpoint, staged, { isCopy })) return { checkpoint: staged.checkpoint };
      if (tries === MAX_TRIES) throw new ApiError("state_changed", { thread_id });
    }
  }

  /** Stores a staged update. Returns false if the thread's checkpoints have changed since. Fails while a run is active. */
  #store(
    caller: Caller,
    at: CheckpointKey,
    { puts, writes, base, state }: StagedUpdate,
    { isCopy }: { isCopy: boolean },
  ): Promise<boolean> {
    const { thread_id } = at;
    // The host reads several times: between the reads a run may have written and been rolled back.
    const [first] = puts.filter(({ checkpoint_ns }) => checkpoint_ns === "");
    const from = at.checkpoint_ns || isCopy ? undefined : (at.checkpoint_id ?? base ?? null);
    return this.#context.database.write(async (tx) => {
      const { tenant_id } = await requireThread(tx, caller, thread_id, lockThread);
      if (await hasActiveRun(tx, thread_id)) throw new ApiError("thread_busy");
      if ((await findHead(tx, thread_id)) !== base) return false;
      if (first && from !== undefined && first.parent_checkpoint_id !== from) return false;
      await requireCheckpoint(tx, thread_id, at);
      const author = { tenant_id, run_id: null, epoch: 0, seq: 0 };
      for (const put of puts) await insertCheckpoint(tx, author, put);
      for (const { writes: rows, ...at } of writes) await insertWrites(tx, author, at, rows);
      await this.#write(tx, thread_id, state);
      return true;
    });
  }

  async #write(tx: Tx, thread_id: string, { values, interrupts, next }: StateSummary): Promise<void> {
    await settleThread(tx, {
      thread_id,
      status: next.length > 0 ? "interrupted" : "idle",
      values: cleanJsonText(values),
      interrupts: cleanJsonText(interrupts),
      error: null,
    });
  }

  /** Returns the thread's last graph, with the configuration of the thread's assistant for graph factories. */
  async #graphOf({ metadata, tenant_id }: ThreadRow): Promise<GraphInUse | undefined> {
    const { graph_id, assistant_id } = JSON.parse(metadata) as { graph_id?: unknown; assistant_id?: unknown };
    if (typeof graph_id !== "string") return undefined;
    const assistant =
      typeof assistant_id === "string"
        ? await findAssistant(this.#context.database.read, tenant_id, assistant_id)
        : undefined;
    if (!assistant || assistant.graph_id !== graph_id) return { graph_id, config: {} };
    return { graph_id, config: JSON.parse(assistant.config), context: JSON.parse(assistant.context) };
  }
}

/** @throws ApiError checkpoint_not_found if the reference names a missing checkpoint */
export async function requireCheckpoint(
  tx: Tx,
  thread_id: string,
  { checkpoint_ns = "", checkpoint_id }: CheckpointRef,
): Promise<void> {
  if (checkpoint_id === undefined) return;
  const found = await findCheckpoint(tx, { thread_id, checkpoint_ns, checkpoint_id });
  if (!found) throw new ApiError("checkpoint_not_found", { thread_id, checkpoint_id });
}

/**
 * @param find pass `lockThread` to lock the row
 * @throws ApiError thread_not_found, also for the hidden thread of a stateless run, and for a thread that the caller cannot access
 */
export async function requireThread(tx: Tx, caller: Caller, thread_id: string, find = findThread): Promise<ThreadRow> {
  const thread = await find(tx, caller.tenant_id, thread_id, filterOf(caller, "threads"));
  if (!thread || thread.hidden) throw new ApiError("thread_not_found", { thread_id });
  return thread;
}

/** Returns a checkpoint key on the thread of the path; a thread id in the body is ignored. */
const keyOf = (thread_id: string, { checkpoint_ns, checkpoint_id }: CheckpointRef): CheckpointKey => ({
  thread_id,
  checkpoint_ns,
  checkpoint_id,
});
