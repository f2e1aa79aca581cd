import type { Caller } from "../platform/contract/caller.ts";
import type { Tx } from "../platform/database/database.ts";
import type { Hint } from "../platform/database/hints.ts";
import { ApiError } from "../platform/errors.ts";
import { newId } from "../platform/lib/ids.ts";
import type { JsonObject } from "../platform/lib/json/json.ts";
import { isoOfMilliseconds } from "../platform/lib/times.ts";
import { findAssistantOrGraph } from "./assistants.ts";
import type { PendingCancel } from "./cancel.ts";
import type { AgentContext } from "./context.ts";
import type { Run } from "./contract/records.ts";
import type { CheckpointRef, RunCreate, StatelessRunCreate } from "./contract/run-create.ts";
import type { StreamedEvent } from "./engine/event-log.ts";
import type { Ending } from "./engine/feed.ts";
import { threadBefore } from "./engine/take-thread.ts";
import { makeWay } from "./multitask.ts";
import { mergeRequest, ownKeys, type RunRequest, startingCheckpoint } from "./run-request.ts";
import { findCheckpoint } from "./storage/checkpoints.ts";
import { lastEventSeq } from "./storage/events.ts";
import { deleteRun } from "./storage/run-deletion.ts";
import { findRun, insertRun, listActiveRuns, listRuns } from "./storage/runs.ts";
import type { AssistantRow, RunRow, ThreadRow } from "./storage/schema.ts";
import { insertThread, lockThread, setThreadBusy } from "./storage/threads.ts";
import { lockRunAndThread, requireThread } from "./thread-access.ts";
import { MAX_TRIES, type ThreadStates } from "./thread-states.ts";

/** Which run: on a thread of the caller, or a stateless one. */
export interface RunPath {
  run_id: string;
  thread_id?: string;
}

/** Executions of an assistant on a thread. */
export class Runs {
  readonly #context: AgentContext;
  readonly #states: ThreadStates;

  constructor(context: AgentContext, states: ThreadStates) {
    this.#context = context;
    this.#states = states;
  }

  /** Accepts a run on a thread. Answered means durable: the run will reach an end, whatever happens to this process. */
  async create(caller: Caller, thread_id: string, body: RunCreate): Promise<RunRow> {
    const assistant = await this.#requireAssistant(caller, body.assistant_id);
    const cancels: PendingCancel[] = [];
    const run = await this.#context.database.write(async (tx) => {
      cancels.length = 0;
      const thread = await this.#lockOrCreateThread(tx, caller, thread_id, body);
      await requireCheckpoint(tx, thread_id, startingCheckpoint(body));
      const active = thread.status === "busy" ? await listActiveRuns(tx, thread_id) : [];
      if (active.length > 0) cancels.push(...(await makeWay(tx, body.multitask_strategy, active)));
      if (cancels.length === 0) return this.#insert(tx, caller, assistant, thread, body, active.length > 0);
      // What was cancelled may be gone already, and have left the thread as it was before.
      const now = (await lockThread(tx, caller.tenant_id, thread_id)) as ThreadRow;
      return this.#insert(tx, caller, assistant, now, body, now.status === "busy");
    }, startHint(body));
    for (const cancel of cancels) cancel.announce(this.#context.database, this.#context.engine.events);
    return run;
  }

  /** Accepts stateless runs, all or none; each gets a hidden thread of its own. */
  async createStateless(caller: Caller, bodies: StatelessRunCreate[]): Promise<RunRow[]> {
    const assistants = await Promise.all(bodies.map((body) => this.#requireAssistant(caller, body.assistant_id)));
    return this.#context.database.write(
      async (tx) => {
        const rows: RunRow[] = [];
        for (const [i, body] of bodies.entries()) {
          const assistant = assistants[i] as AssistantRow;
          const temporary = body.on_completion === "delete";
          const metadata = JSON.stringify({
            ...body.metadata,
            graph_id: assistant.graph_id,
            assistant_id: assistant.assistant_id,
          });
          const thread = await insertThread(tx, {
            thread_id: newId(),
            tenant_id: caller.tenant_id,
            metadata,
            hidden: temporary ? 1 : 0,
          });
          rows.push(await this.#insert(tx, caller, assistant, thread as ThreadRow, body, false, temporary));
        }
        return rows;
      },
      startHint(...bodies),
    );
  }

  /** The run as it is stored. */
  async find(caller: Caller, { run_id, thread_id }: RunPath): Promise<RunRow> {
    const run = await findRun(this.#context.database.read, { tenant_id: caller.tenant_id, run_id, thread_id });
    if (!run) throw new ApiError("run_not_found");
    return run;
  }

  async get(caller: Caller, path: RunPath): Promise<Run> {
    return toRun(await this.find(caller, path));
  }

  /** Newest first. */
  async list(
    caller: Caller,
    thread_id: string,
    filter: { status?: Run["status"]; limit: number; offset: number },
  ): Promise<Run[]> {
    const { read } = this.#context.database;
    await requireThread(read, caller, thread_id);
    return (await listRuns(read, { tenant_id: caller.tenant_id, thread_id, ...filter })).map(toRun);
  }

  /**
   * Deletes a run that has ended, with the checkpoints it wrote.
   *
   * @throws ApiError run_active; thread_busy when another run of the thread builds on those checkpoints, or soon will
   */
  async delete(caller: Caller, thread_id: string, run_id: string): Promise<void> {
    const { database } = this.#context;
    for (let tries = 1; ; tries++) {
      await this.find(caller, { thread_id, run_id });
      const foreseen = await this.#states.without(caller, thread_id, run_id);
      const done = await database.write(async (tx) => {
        const run = await lockRunAndThread(tx, { tenant_id: caller.tenant_id, thread_id, run_id });
        if (run.ended_at === null) throw new ApiError("run_active", { run_id, status: run.status });
        if ((await listActiveRuns(tx, thread_id)).length > 0) throw new ApiError("thread_busy");
        if (!(await this.#states.settle(tx, caller, thread_id, foreseen))) return false;
        await deleteRun(tx, run);
        return true;
      });
      if (done) return;
      if (tries === MAX_TRIES) throw new ApiError("state_changed", { thread_id });
    }
  }

  /** The run's output as JSON text, once it has ended. */
  async output(run: RunRow, signal: AbortSignal): Promise<string> {
    const ending: Ending | undefined =
      run.ended_at === null
        ? await this.#context.engine.events.ending(run, signal)
        : { status: run.status, output: run.output };
    return outputOf(ending);
  }

  /** As {@link output}, for a run that this request has just created. */
  async outputOfNew(run: RunRow, signal: AbortSignal): Promise<string> {
    const ending = await this.#context.engine.events.ending(run, signal, { isNew: true });
    return outputOf(ending);
  }

  /**
   * The events of a run. `after` is the id of the last event seen (0: from the start); undefined means from now
   * on, and then the stream starts with a `metadata` event of its own, without id.
   */
  async events(
    caller: Caller,
    path: RunPath,
    after: number | undefined,
    signal: AbortSignal,
  ): Promise<{ run: RunRow; events: AsyncGenerator<readonly StreamedEvent[]> }> {
    const run = await this.find(caller, path);
    const seen = after ?? (await lastEventSeq(this.#context.database.read, run.run_id));
    return { run, events: this.#follow(followed(run), seen, after === undefined && seen > 0, signal) };
  }

  /** The events of a run that this request has just created. */
  eventsOfNew(run: RunRow, signal: AbortSignal): AsyncGenerator<readonly StreamedEvent[]> {
    return this.#follow(followed(run), 0, false, signal);
  }

  async *#follow(
    run: Followed,
    seen: number,
    introduce: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<readonly StreamedEvent[]> {
    const metadata = [{ event: "metadata", data: JSON.stringify({ run_id: run.run_id, attempt: run.attempt }) }];
    if (introduce) yield metadata;
    let told = introduce || seen > 0;
    for await (const events of this.#context.engine.events.follow(run, seen, signal)) {
      if (!told && events[0]?.event === "gap") yield metadata;
      told = true;
      yield events;
    }
    // A run that ended before it began has no events, and yet every stream begins with this one.
    if (!told) yield metadata;
  }

  async #requireAssistant(caller: Caller, assistant_id: string): Promise<AssistantRow> {
    const assistant = await findAssistantOrGraph(this.#context.database.read, caller, assistant_id);
    if (!assistant) throw new ApiError("no_such_assistant", { assistant_id });
    this.#context.catalog.require(assistant.graph_id);
    return assistant;
  }

  async #lockOrCreateThread(tx: Tx, caller: Caller, thread_id: string, body: RunCreate): Promise<ThreadRow> {
    const { tenant_id } = caller;
    const thread = await lockThread(tx, tenant_id, thread_id);
    if (thread && !thread.hidden) return thread;
    if (thread || body.if_not_exists === "reject") throw new ApiError("thread_not_found", { thread_id });
    const metadata = JSON.stringify(ownKeys(body.metadata));
    const created = await insertThread(tx, { thread_id, tenant_id, metadata, hidden: 0 });
    // Taken meanwhile by another create, or by another tenant.
    const found = created ?? (await lockThread(tx, tenant_id, thread_id));
    if (!found) throw new ApiError("thread_not_found", { thread_id });
    return found;
  }

  async #insert(
    tx: Tx,
    caller: Caller,
    assistant: AssistantRow,
    thread: ThreadRow,
    request: RunRequest & { after_seconds?: number },
    busy: boolean,
    temporary = false,
  ): Promise<RunRow> {
    const { graph_id, assistant_id } = assistant;
    const run_id = newId();
    const threadMetadata = JSON.parse(thread.metadata) as JsonObject;
    const { kwargs, metadata } = mergeRequest(
      request,
      assistant,
      { ...thread, metadata: threadMetadata },
      { run_id, temporary },
      caller,
    );
    // Says which graph reads the state later: the latest one, but not one that only waits behind another.
    const changed = busy ? threadMetadata : { ...threadMetadata, graph_id, assistant_id };
    const changed_at = await setThreadBusy(tx, thread.thread_id, JSON.stringify(changed));
    const before = threadBefore(threadMetadata, thread.updated_at, changed_at);
    return insertRun(tx, {
      run_id,
      tenant_id: caller.tenant_id,
      thread_id: thread.thread_id,
      assistant_id,
      graph_id,
      metadata: JSON.stringify(metadata),
      kwargs: JSON.stringify(kwargs),
      multitask_strategy: request.multitask_strategy ?? "enqueue",
      temporary: temporary ? 1 : 0,
      delay_ms: Math.round((request.after_seconds ?? 0) * 1000),
      thread_before: busy ? null : JSON.stringify(before),
    });
  }
}

/**
 * Clients look into the answer with `in`, so it is an object in every case.
 *
 * @throws ApiError run_not_found for a run that was rolled back
 */
function outputOf(ending: Ending | undefined): string {
  if (!ending) throw new ApiError("run_not_found");
  return ending.output === null || ending.output === "null" ? "{}" : ending.output;
}

/** Wakes the workers when the first of the new runs may start. */
const startHint = (...bodies: { after_seconds?: number }[]): Hint => ({
  kind: "runs",
  isNew: true,
  in_ms: Math.min(...bodies.map(({ after_seconds = 0 }) => after_seconds * 1000)),
});

/** What a stream keeps of its run. The whole row of each would be 3 KB a stream, and much more with a large input. */
type Followed = Pick<RunRow, "run_id" | "tenant_id" | "attempt">;

const followed = ({ run_id, tenant_id, attempt }: RunRow): Followed => ({ run_id, tenant_id, attempt });

/** A run from a checkpoint that is not there would start from nothing, and look as if the thread had lost its state. */
async function requireCheckpoint(
  tx: Tx,
  thread_id: string,
  { checkpoint_ns = "", checkpoint_id }: CheckpointRef,
): Promise<void> {
  if (checkpoint_id === undefined) return;
  const found = await findCheckpoint(tx, { thread_id, checkpoint_ns, checkpoint_id });
  if (!found) throw new ApiError("checkpoint_not_found", { thread_id, checkpoint_id });
}

export function toRun(row: RunRow): Run {
  return {
    run_id: row.run_id,
    thread_id: row.thread_id,
    assistant_id: row.assistant_id,
    created_at: isoOfMilliseconds(row.created_at),
    updated_at: isoOfMilliseconds(row.updated_at),
    status: row.status,
    metadata: JSON.parse(row.metadata),
    kwargs: JSON.parse(row.kwargs),
    multitask_strategy: row.multitask_strategy,
    ...(row.cancel_reason !== null && { cancel_reason: row.cancel_reason }),
  };
}
