import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import { isObject } from "../../platform/lib/json/json.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import { filterOf, grantedMetadata } from "../auth/grants.ts";
import type { AgentContext } from "../context.ts";
import type { ThreadTextSearch } from "../contract/app-threads.ts";
import type { Thread, ThreadStreamMode } from "../contract/records.ts";
import type { ThreadCreate, ThreadFilter, ThreadPatch, ThreadSearch, ThreadTtlRequest } from "../contract/threads.ts";
import {
  cancelLocked,
  type PendingCancel,
  type Position,
  START,
  type StreamedEvent,
  type ThreadEvent,
} from "../engine/index.ts";
import { mergedMetadata } from "../metadata.ts";
import { toRunEvents } from "../protocols/thread-protocol/protocol-events.ts";
import { listActiveRuns } from "../storage/runs.ts";
import type { ThreadRow } from "../storage/schema.ts";
import { countThreads, searchThreads } from "../storage/thread-search.ts";
import {
  copyThread,
  deleteThread,
  findThread,
  insertThread,
  lockThread,
  patchThread,
  type ThreadTtl,
} from "../storage/threads.ts";
import { requireThread, type ThreadStates } from "./thread-states.ts";

export class Threads {
  readonly #context: AgentContext;
  readonly #states: ThreadStates;

  constructor(context: AgentContext, states: ThreadStates) {
    this.#context = context;
    this.#states = states;
  }

  /** Creates a thread, with a history from `supersteps`. If the history cannot be created, the thread is deleted again. */
  async create(caller: Caller, body: ThreadCreate): Promise<Thread> {
    const { database } = this.#context;
    const thread_id = body.thread_id ?? newId();
    const metadata = JSON.stringify(body.metadata);
    const { row, created } = await database.write(async (tx) => {
      const ttl = body.ttl ? ttlOf(body.ttl) : this.#context.thread_ttl;
      const inserted = await insertThread(tx, { thread_id, tenant_id: caller.tenant_id, metadata, hidden: 0, ...ttl });
      if (inserted) return { row: inserted, created: true };
      const find = () => findThread(tx, caller.tenant_id, thread_id, filterOf(caller, "threads"));
      const existing = body.if_exists === "do_nothing" ? await find() : undefined;
      if (!existing || existing.hidden) throw new ApiError("thread_exists");
      return { row: existing, created: false };
    });
    if (!created || !body.supersteps?.length) return toThread(row);
    const supersteps = body.supersteps.map((step) => step.updates);
    try {
      await this.#states.replay(caller, thread_id, supersteps);
    } catch (error) {
      await database.write(async (tx) => {
        const now = await lockThread(tx, caller.tenant_id, thread_id);
        // Another request has used the thread since.
        if (now?.status === "idle" && now.updated_at === row.updated_at) await deleteThread(tx, thread_id);
      });
      throw error;
    }
    return this.get(caller, thread_id);
  }

  async get(caller: Caller, thread_id: string, { include }: { include?: readonly "ttl"[] } = {}): Promise<Thread> {
    const row = await requireThread(this.#context.database.read, caller, thread_id);
    return { ...toThread(row), ...(include?.includes("ttl") && { ttl: ttlRecord(row) }) };
  }

  /** Like {@link get}, but returns undefined if the caller has no such thread. */
  async find(caller: Caller, thread_id: string): Promise<Thread | undefined> {
    const row = await findThread(this.#context.database.read, caller.tenant_id, thread_id, filterOf(caller, "threads"));
    return row && !row.hidden ? toThread(row) : undefined;
  }

  async patch(caller: Caller, thread_id: string, body: ThreadPatch): Promise<Thread> {
    const row = await this.#context.database.write(async (tx) => {
      const thread = await requireThread(tx, caller, thread_id, lockThread);
      const metadata = mergedMetadata(thread.metadata, body.metadata);
      return patchThread(tx, thread_id, { metadata, ...(body.ttl && ttlOf(body.ttl)) });
    });
    return toThread(row);
  }

  /** Deletes a thread with its runs and state, and stops its active runs. */
  async delete(caller: Caller, thread_id: string): Promise<void> {
    const { database, engine } = this.#context;
    const cancels = await database.write(async (tx) =>
      removeThread(tx, await requireThread(tx, caller, thread_id, lockThread)),
    );
    engine.publishCancels(cancels);
    engine.deleteTraces();
    database.hints.emit({ kind: "thread", thread_id });
  }

  /**
   * The events of a thread, run after run, until it is deleted. `after` is the id of the last received event; `-` returns all events,
   * undefined only new events.
   *
   * @throws ApiError thread_not_found; invalid_request for an id in another format
   */
  async events(
    caller: Caller,
    thread_id: string,
    modes: readonly ThreadStreamMode[],
    after: string | undefined,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<readonly StreamedEvent[]>> {
    const { database, engine } = this.#context;
    const thread = await requireThread(database.read, caller, thread_id);
    const position = after === undefined ? await engine.threadEvents.now(thread) : positionOf(after);
    return eventsOf(engine.threadEvents.follow(thread, position, signal), modes);
  }

  async search(
    caller: Caller,
    body: ThreadSearch & Pick<ThreadTextSearch, "text" | "exclude_metadata">,
  ): Promise<Thread[]> {
    const { ids, metadata, exclude_metadata, values, status, text, extract, ...paging } = body;
    const filter = { ids, metadata, exclude_metadata, values, status, text, access: filterOf(caller, "threads") };
    const rows = await searchThreads(this.#context.database.search, caller.tenant_id, filter, paging);
    return rows.map((row) => {
      const thread = toThread(row);
      return extract ? { ...thread, extracted: extractPaths(thread, extract) } : thread;
    });
  }

  count(caller: Caller, filter: ThreadFilter): Promise<number> {
    const access = filterOf(caller, "threads");
    return countThreads(this.#context.database.search, caller.tenant_id, { ...filter, access });
  }

  /** Creates a thread with the same state and history, and no runs. */
  async copy(caller: Caller, source_id: string): Promise<Thread> {
    const row = await this.#context.database.write(async (tx) => {
      const source = await lockThread(tx, caller.tenant_id, source_id, filterOf(caller, "threads"));
      if (!source || source.hidden) throw new ApiError("copy_source_not_found", { thread_id: source_id });
      const thread_id = tx.newId();
      const metadata = mergedMetadata(source.metadata, { thread_id, ...grantedMetadata(caller, "threads") });
      return copyThread(tx, source, { thread_id, metadata });
    });
    return toThread(row);
  }
}

async function* eventsOf(
  batches: AsyncGenerator<ThreadEvent[]>,
  modes: readonly ThreadStreamMode[],
): AsyncGenerator<readonly StreamedEvent[]> {
  for await (const events of batches) {
    const wanted = events.filter(({ mode }) => modes.includes(mode));
    const sent = toRunEvents(wanted.map(({ event, data, at }) => ({ event, data, seq: idOf(at) })));
    if (sent.length > 0) yield sent;
  }
}

const idOf = ({ started_at, seq, event }: Position): string => `${started_at}-${seq}-${event}`;

function positionOf(id: string): Position {
  if (id === "-" || id === "-1") return START;
  const [, started_at, seq, event] = /^(\d{1,15})-(\d{1,15})-(\d{1,15})$/.exec(id) ?? [];
  if (event === undefined)
    throw new ApiError("invalid_request", {
      reason: `header.Last-Event-ID: must be an event ID of this stream or "-" (all events), but is "${id}"`,
    });
  return { started_at: Number(started_at), seq: Number(seq), event: Number(event) };
}

const MS_PER_MINUTE = 60_000;

const ttlOf = ({ strategy, ttl }: ThreadTtlRequest): ThreadTtl => ({
  ttl_strategy: strategy,
  ttl_ms: Math.ceil(ttl * MS_PER_MINUTE),
});

const ttlRecord = ({ ttl_strategy, ttl_ms, updated_at }: ThreadRow): Thread["ttl"] =>
  ttl_strategy && ttl_ms !== null
    ? {
        strategy: ttl_strategy,
        ttl_minutes: ttl_ms / MS_PER_MINUTE,
        expires_at: isoOfMilliseconds(updated_at + ttl_ms),
      }
    : null;

/** Deletes a locked thread and cancels its active runs. Returns the cancels to publish after the commit. */
export async function removeThread(tx: Tx, thread: ThreadRow): Promise<PendingCancel[]> {
  const cancels: PendingCancel[] = [];
  for (const run of await listActiveRuns(tx, thread.thread_id))
    cancels.push(...(await cancelLocked(tx, run, { action: "interrupt", reason: null })));
  await deleteThread(tx, thread.thread_id);
  return cancels;
}

/** Returns the parts of a thread at paths such as `values.messages[-1].content`, by alias; null for a path without a value. */
const extractPaths = (thread: Thread, paths: Record<string, string>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(paths).map(([alias, path]) => [alias, valueAt(thread, path)]));

function valueAt(value: unknown, path: string): unknown {
  let current = value;
  for (const step of path.match(/[^.[\]]+/g) ?? []) {
    if (Array.isArray(current)) current = /^-?\d+$/.test(step) ? current.at(Number(step)) : undefined;
    else if (isObject(current) && Object.hasOwn(current, step)) current = current[step];
    else return null;
  }
  return current ?? null;
}

export function toThread(row: ThreadRow): Thread {
  return {
    thread_id: row.thread_id,
    created_at: isoOfMilliseconds(row.created_at),
    updated_at: isoOfMilliseconds(row.updated_at),
    state_updated_at: isoOfMilliseconds(row.state_updated_at),
    metadata: JSON.parse(row.metadata),
    config: JSON.parse(row.config),
    status: row.status,
    values: row.values === null ? null : JSON.parse(row.values),
    interrupts: JSON.parse(row.interrupts),
    error: row.error === null ? null : JSON.parse(row.error),
  };
}
