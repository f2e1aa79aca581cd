import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import type { Hint } from "../../platform/database/hints.ts";
import { ApiError } from "../../platform/errors.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import { findAssistantOrGraph } from "../assistants/assistants.ts";
import { filterOf } from "../auth/grants.ts";
import { requireAccessToRun, toRun } from "../auth/run-access.ts";
import { type AgentContext, requireLanguage, requireQueueSpace } from "../context.ts";
import type { Run, RunStatus } from "../contract/records.ts";
import type { RunCreate, StatelessRunCreate } from "../contract/run-schemas.ts";
import {
  applyMultitaskStrategy,
  bindOnAccept,
  type LockedThread,
  newlyBound,
  type PendingCancel,
  type StreamedEvent,
} from "../engine/index.ts";
import { toRunEvents } from "../protocols/thread-protocol/protocol-events.ts";
import { lastEventSeq } from "../storage/events.ts";
import { deleteRun } from "../storage/run-deletion.ts";
import { findRun, insertRun, listRuns, lockThreadAndRun, type RunFilter } from "../storage/runs.ts";
import type { AssistantRow, RunKey, RunRow, ThreadRow } from "../storage/schema.ts";
import { hasActiveRun, insertThread, isThreadReadable, lockThread } from "../storage/threads.ts";
import { MAX_TRIES, requireCheckpoint, requireThread, type ThreadStates } from "../threads/thread-states.ts";
import { mergeRequest, type RunRequest, startingCheckpoint, withoutReserved } from "./merge-request.ts";

/** `thread_id` is absent in the paths of stateless runs. */
export interface RunPath {
  run_id: string;
  thread_id?: string;
}

/** A request for a run, with fields that clients cannot set. */
type NewRun = RunCreate & Pick<RunRequest, "stream_protocol" | "push_configs">;

export interface StatelessOptions {
  /** Default: a new id. */
  run_id?: string;
  /** Keeps and shows the thread if the run is paused, so that a later run can answer its interrupts. */
  keep_paused?: boolean;
}

export class Runs {
  readonly #context: AgentContext;
  readonly #states: ThreadStates;

  constructor(context: AgentContext, states: ThreadStates) {
    this.#context = context;
    this.#states = states;
  }

  /** Accepts a run on a thread. An accepted run is durable: it is executed to its end even if this process dies. */
  async create(caller: Caller, thread_id: string, body: NewRun): Promise<RunRow> {
    return this.createFor(caller, thread_id, body, async () => body);
  }

  /** Like {@link create}, with a request that `bodyOf` creates in the transaction of the new run. */
  async createFor(
    caller: Caller,
    thread_id: string,
    { assistant_id, after_seconds }: Pick<RunCreate, "assistant_id" | "after_seconds">,
    bodyOf: (tx: Tx) => Promise<NewRun>,
  ): Promise<RunRow> {
    const assistant = await this.requireAssistant(caller, assistant_id);
    const add = async (tx: Tx) => this.addToThread(tx, caller, assistant, thread_id, await bodyOf(tx));
    const { run, cancels } = await this.#context.database.write(add, startHint({ after_seconds }));
    this.#context.engine.publishCancels(cancels);
    return run;
  }

  /** Like {@link create}, in a transaction. The caller publishes the cancels after the commit. */
  async addToThread(
    tx: Tx,
    caller: Caller,
    assistant: AssistantRow,
    thread_id: string,
    body: NewRun,
  ): Promise<{ run: RunRow; cancels: PendingCancel[] }> {
    const thread = await this.#lockOrCreateThread(tx, caller, thread_id, body, assistant);
    await requireCheckpoint(tx, thread_id, startingCheckpoint(body));
    const isBusy = thread.status === "busy" && (await hasActiveRun(tx, thread_id));
    const cancels = isBusy ? await applyMultitaskStrategy(tx, body.multitask_strategy, thread_id) : [];
    if (cancels.length === 0) return { run: await this.#insert(tx, caller, assistant, thread, body, isBusy), cancels };
    // A rollback may have deleted runs and restored the thread's record.
    const now = (await lockThread(tx, caller.tenant_id, thread_id)) as ThreadRow;
    return { run: await this.#insert(tx, caller, assistant, now, body, now.status === "busy"), cancels };
  }

  /** Accepts stateless runs, all or none. Each run has its own thread, which is hidden if it is deleted at the end of the run. */
  async createStateless(
    caller: Caller,
    bodies: StatelessRunCreate[],
    options: StatelessOptions = {},
  ): Promise<RunRow[]> {
    const assistants = await Promise.all(bodies.map((body) => this.requireAssistant(caller, body.assistant_id)));
    return this.#context.database.write(
      async (tx) => {
        const rows: RunRow[] = [];
        for (const [i, body] of bodies.entries())
          rows.push(await this.addStateless(tx, caller, assistants[i] as AssistantRow, body, options));
        return rows;
      },
      startHint(...bodies),
    );
  }

  /** Accepts a stateless run in a transaction. */
  async addStateless(
    tx: Tx,
    caller: Caller,
    assistant: AssistantRow,
    body: Omit<StatelessRunCreate, "assistant_id">,
    options: StatelessOptions = {},
  ): Promise<RunRow> {
    const { graph_id, assistant_id } = assistant;
    const { tenant_id } = caller;
    const temporary = body.on_completion === "delete";
    const ttl = temporary && !options.keep_paused ? {} : this.#context.thread_ttl;
    const metadata = JSON.stringify({ ...body.metadata, graph_id, assistant_id });
    const thread = await insertThread(tx, {
      thread_id: tx.newId(),
      tenant_id,
      metadata,
      hidden: temporary ? 1 : 0,
      status: "busy",
      ...ttl,
    });
    return this.#insert(tx, caller, assistant, newlyBound(thread as ThreadRow), body, false, { temporary, ...options });
  }

  async find(caller: Caller, { run_id, thread_id }: RunPath): Promise<RunRow> {
    const { read } = this.#context.database;
    const run = await findRun(read, { tenant_id: caller.tenant_id, run_id, thread_id });
    if (!run?.ended_at) return requireAccessToRun(read, caller, run);
    // Without a thread, the run is that of a deleted temporary thread, or the thread was deleted after the run was read.
    const isReadable = (await isThreadReadable(read, run.thread_id)) ?? run.temporary === 1;
    return requireAccessToRun(read, caller, isReadable ? run : undefined);
  }

  async get(caller: Caller, path: RunPath): Promise<Run> {
    return toRun(await this.find(caller, path));
  }

  /** Returns the runs of a thread, newest first. */
  async list(caller: Caller, thread_id: string, filter: RunFilter): Promise<Run[]> {
    const { read } = this.#context.database;
    const thread = await requireThread(read, caller, thread_id);
    return (await listRuns(read, thread, filter)).map(toRun);
  }

  /**
   * Deletes an ended run with its checkpoints.
   *
   * @throws ApiError run_not_found; run_active; state_changed; thread_busy while another run is active: it may use the checkpoints
   */
  async delete(caller: Caller, thread_id: string, run_id: string): Promise<void> {
    const { database } = this.#context;
    for (let tries = 1; ; tries++) {
      await this.find(caller, { thread_id, run_id });
      const record = await this.#states.recordWithout(caller, thread_id, run_id);
      const done = await database.write(async (tx) => {
        const found = await lockThreadAndRun(tx, { tenant_id: caller.tenant_id, thread_id, run_id });
        const run = await requireAccessToRun(tx, caller, found);
        if (run.ended_at === null) throw new ApiError("run_active", { run_id, status: run.status });
        if (await hasActiveRun(tx, thread_id)) throw new ApiError("thread_busy");
        if (!(await this.#states.storeIfUnchanged(tx, caller, thread_id, record))) return false;
        await deleteRun(tx, run);
        return true;
      });
      if (done) return this.#context.engine.deleteTraces();
      if (tries === MAX_TRIES) throw new ApiError("state_changed", { thread_id });
    }
  }

  /**
   * Waits for the end of a run and returns its output as JSON text; `{}` instead of `null`, because clients use `in` on it.
   *
   * @param isNew whether this request created the run
   * @throws ApiError run_not_found if the run was rolled back or deleted
   */
  async output(run: RunRow, signal: AbortSignal, options: { isNew?: boolean } = {}): Promise<string> {
    return (await this.ending(run, signal, options)).output;
  }

  /** Like {@link output}, with the status of the run. */
  async ending(
    run: RunRow,
    signal: AbortSignal,
    { isNew = false } = {},
  ): Promise<{ status: RunStatus; output: string }> {
    const ending = run.ended_at === null ? await this.#context.engine.events.ending(run, signal, { isNew }) : run;
    if (!ending) throw new ApiError("run_not_found");
    const output = ending.output === null || ending.output === "null" ? "{}" : ending.output;
    return { status: ending.status as RunStatus, output };
  }

  /**
   * Returns the events of a run after the id `after`; 0 returns all events, undefined only new events. A stream of new events starts with a
   * `metadata` event without id.
   */
  async events(
    caller: Caller,
    path: RunPath,
    after: number | undefined,
    signal: AbortSignal,
  ): Promise<{ run: RunRow; events: AsyncGenerator<readonly StreamedEvent[]> }> {
    const run = await this.find(caller, path);
    const seen = after ?? (await lastEventSeq(this.#context.database.read, run.run_id));
    return { run, events: this.#follow(followedRun(run), seen, after === undefined && seen > 0, signal) };
  }

  eventsOfNew(run: RunRow, signal: AbortSignal): AsyncGenerator<readonly StreamedEvent[]> {
    return this.#follow(followedRun(run), 0, false, signal);
  }

  async *#follow(
    run: FollowedRun,
    seen: number,
    sendMetadata: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<readonly StreamedEvent[]> {
    const metadata = [{ event: "metadata", data: JSON.stringify({ run_id: run.run_id, attempt: run.attempt }) }];
    if (sendMetadata) yield metadata;
    let hasMetadata = sendMetadata || seen > 0;
    for await (const events of this.#context.engine.events.follow(run, seen, signal)) {
      if (!hasMetadata && events[0]?.event === "gap") yield metadata;
      hasMetadata = true;
      yield toRunEvents(events);
    }
    // Every stream begins with the metadata, including the stream of a run that ended before it started.
    if (!hasMetadata) yield metadata;
  }

  /** @throws ApiError no_such_assistant, graph_not_found, graph_unavailable */
  async requireAssistant(caller: Caller, assistant_id: string): Promise<AssistantRow> {
    const assistant = await findAssistantOrGraph(this.#context.database.read, caller, assistant_id);
    if (!assistant) throw new ApiError("no_such_assistant", { assistant_id });
    this.#context.catalog.require(assistant.graph_id);
    return assistant;
  }

  async #lockOrCreateThread(
    tx: Tx,
    caller: Caller,
    thread_id: string,
    body: NewRun,
    { graph_id, assistant_id }: AssistantRow,
  ): Promise<LockedThread> {
    const { tenant_id } = caller;
    const filter = filterOf(caller, "threads");
    const thread = await lockThread(tx, tenant_id, thread_id, filter);
    if (thread && !thread.hidden) return thread;
    if (thread || body.if_not_exists === "reject") throw new ApiError("thread_not_found", { thread_id });
    const own = withoutReserved(body.metadata);
    const metadata = JSON.stringify({ ...own, graph_id, assistant_id });
    const row = { thread_id, tenant_id, metadata, hidden: 0, status: "busy" as const, ...this.#context.thread_ttl };
    const created = await insertThread(tx, row);
    if (created) return newlyBound(created, JSON.stringify(own));
    // The id is taken if a concurrent request, another tenant or another user has created the thread.
    const found = await lockThread(tx, tenant_id, thread_id, filter);
    if (!found) throw new ApiError("thread_not_found", { thread_id });
    return found;
  }

  async #insert(
    tx: Tx,
    caller: Caller,
    assistant: AssistantRow,
    thread: LockedThread,
    request: RunRequest & { after_seconds?: number },
    busy: boolean,
    { temporary = false, run_id = tx.newId(), keep_paused = false }: StatelessOptions & { temporary?: boolean } = {},
  ): Promise<RunRow> {
    const { graph_id, assistant_id } = assistant;
    await requireQueueSpace(tx, caller, this.#context.max_pending);
    await requireLanguage(tx, this.#context.catalog, thread.thread_id, graph_id);
    const parsed = { ...thread, metadata: JSON.parse(thread.metadata) as JsonObject };
    const { kwargs, metadata } = mergeRequest(request, assistant, parsed, { run_id, temporary, keep_paused }, caller);
    const snapshot = await bindOnAccept(tx, parsed, { graph_id, assistant_id, busy });
    return insertRun(tx, {
      run_id,
      tenant_id: caller.tenant_id,
      user_id: caller.user_id,
      thread_id: thread.thread_id,
      assistant_id,
      graph_id,
      metadata: JSON.stringify(metadata),
      kwargs: JSON.stringify(kwargs),
      multitask_strategy: request.multitask_strategy ?? "enqueue",
      temporary: temporary ? 1 : 0,
      delay_ms: Math.round((request.after_seconds ?? 0) * 1000),
      thread_snapshot: snapshot && JSON.stringify(snapshot),
      webhook: this.#context.webhooks.accept(request.webhook),
      push_configs: request.push_configs?.length ? JSON.stringify(request.push_configs) : null,
    });
  }
}

/** Wakes the workers when the first of the new runs is due. */
const startHint = (...bodies: { after_seconds?: number }[]): Hint => ({
  kind: "runs",
  isNew: true,
  in_ms: Math.min(...bodies.map(({ after_seconds = 0 }) => after_seconds * 1000)),
});

/** The fields of a run that its stream retains. The whole row would take 3 KB per stream, and more with a large input. */
type FollowedRun = RunKey & Pick<RunRow, "attempt">;

const followedRun = ({ run_id, tenant_id, attempt }: RunRow): FollowedRun => ({ run_id, tenant_id, attempt });
