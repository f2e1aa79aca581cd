import type { Caller, MetadataFilter } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { DatabaseUnavailableError } from "../../platform/database/database-errors.ts";
import { type BackgroundService, periodicService } from "../../platform/lib/background-service.ts";
import type { Log } from "../../platform/lib/log.ts";
import { filterOf } from "../auth/grants.ts";
import type { AgentContext } from "../context.ts";
import type { ThreadPrune, ThreadStorage } from "../contract/threads.ts";
import { checkpointSizes, keepNewestCheckpoints } from "../storage/checkpoints/checkpoints.ts";
import type { ThreadRow } from "../storage/schema.ts";
import { listExpiredThreads, lockThread, setPruned } from "../storage/threads.ts";
import { requireThread } from "./thread-states.ts";
import { removeThread } from "./threads.ts";

type Strategy = ThreadPrune["strategy"];

/** Deletes threads, or their old checkpoints, on request and when their time to live is over. */
export class ThreadRetention {
  readonly #context: AgentContext;

  constructor(context: AgentContext) {
    this.#context = context;
  }

  /** Returns the number of threads that were deleted or whose old checkpoints were deleted. Skips threads that do not exist. */
  async prune(caller: Caller, { thread_ids, strategy }: ThreadPrune): Promise<number> {
    const filter = filterOf(caller, "threads");
    let count = 0;
    for (const thread_id of new Set(thread_ids)) {
      const thread = { tenant_id: caller.tenant_id, thread_id, filter };
      if (await this.#change(thread, strategy, ({ hidden }) => !hidden)) count++;
    }
    return count;
  }

  /** @throws ApiError thread_not_found */
  async storage(caller: Caller, thread_id: string): Promise<ThreadStorage> {
    const { read } = this.#context.database;
    await requireThread(read, caller, thread_id);
    const { checkpoints, channels, writes } = await checkpointSizes(read, thread_id);
    const sum = (field: "count" | "bytes") => channels.reduce((total, channel) => total + channel[field], 0);
    const by_channel = Object.fromEntries(
      channels.map(({ channel, count, bytes }) => [channel, { versions: count, bytes }]),
    );
    return {
      thread_id,
      total_bytes: checkpoints.bytes + sum("bytes") + writes.bytes,
      checkpoints,
      channel_values: { count: sum("count"), bytes: sum("bytes"), by_channel },
      pending_writes: writes,
    };
  }

  /** Frees the space of expired threads. */
  sweeper({ interval_ms, limit }: { interval_ms: number; limit: number }, log: Log): BackgroundService {
    return periodicService(
      interval_ms,
      () => this.#sweep(limit, log),
      (error) => log.error({ error }, "thread sweep failed"),
    );
  }

  /**
   * A thread that cannot be deleted does not affect the others. The next sweep tries it again.
   *
   * @param limit maximum number of threads
   */
  async #sweep(limit: number, log: Log): Promise<void> {
    const expired = await listExpiredThreads(this.#context.database.read, limit);
    for (const { tenant_id, thread_id, ttl_strategy, updated_at } of expired) {
      const isUnchanged = (row: ThreadRow) => row.updated_at === updated_at;
      try {
        await this.#change({ tenant_id, thread_id }, ttl_strategy as Strategy, isUnchanged);
      } catch (error) {
        if (error instanceof DatabaseUnavailableError) throw error;
        log.error({ thread_id, workspace_id: tenant_id, error }, "applying the TTL of a thread failed");
      }
    }
  }

  /** Deletes a thread that meets `accepts`, or its old checkpoints unless it is busy. Returns whether anything was deleted. */
  async #change(
    { tenant_id, thread_id, filter }: { tenant_id: string; thread_id: string; filter?: MetadataFilter | undefined },
    strategy: Strategy,
    accepts: (row: ThreadRow) => boolean,
  ): Promise<boolean> {
    const { database, engine } = this.#context;
    const apply = async (tx: Tx) => {
      const row = await lockThread(tx, tenant_id, thread_id, filter, { even_expired: true });
      if (!row || !accepts(row)) return undefined;
      if (strategy === "delete") return removeThread(tx, row);
      if (row.status === "busy") return undefined;
      await setPruned(tx, thread_id);
      return (await keepNewestCheckpoints(tx, thread_id)) > 0 ? [] : undefined;
    };
    const cancels = await database.write(apply);
    if (!cancels) return false;
    engine.publishCancels(cancels);
    if (strategy === "delete") {
      engine.deleteTraces();
      database.hints.emit({ kind: "thread", thread_id });
    }
    return true;
  }
}
