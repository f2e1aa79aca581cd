import { randomUUID } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  BaseCheckpointSaver,
  ChannelVersions,
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
  CheckpointTuple,
  PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { CheckpointData, CheckpointWrite, ValueData, WriteData } from "../checkpoint-requests.ts";
import type { RunEpoch, StagedUpdate } from "../host.ts";
import { isPendingResume, isResume, TASKS } from "./commands.ts";
import type { CommitPoints } from "./commit-points.ts";
import type { ServiceConnection } from "./connection.ts";
import type { Library } from "./loading/library.ts";
import { StateSerializer, type Stored } from "./serializer.ts";

/**
 * The context in which a graph is used, stored in `configurable`, which LangGraph passes to every checkpointer call, including in subgraphs.
 */
export interface Scope {
  /** The run that writes; absent for queries. */
  run?: RunEpoch;
  /** The thread's newest root checkpoint. Removed after its first use or the run's first checkpoint. */
  head?: { data: CheckpointData | null };
  commits?: CommitPoints;
  /** Whether this run or an earlier one has consumed the resume value of the checkpoint. */
  isResumeConsumed?: boolean;
  /** Hides resume values in state reads and updates: LangGraph treats a node's resume value as its write, and the node as completed. */
  hideResumes?: boolean;
  /** A run whose checkpoints and writes are ignored. */
  without?: string;
  metadata: Record<string, unknown>;
  /** Collects the checkpoints of a state update, which are stored together. */
  staged?: Pick<StagedUpdate, "puts" | "writes">;
}

const SCOPE = "__threadmill_scope";

export const withScope = (configurable: Record<string, unknown>, scope: Scope): Record<string, unknown> => ({
  ...configurable,
  [SCOPE]: scope,
});

/** Adds the scope of `config` to `configurable`, for configs that LangGraph passes back. */
function keepScope(config: RunnableConfig, configurable: Record<string, unknown>): Record<string, unknown> {
  const scope = config.configurable?.[SCOPE] as Scope | undefined;
  return scope ? withScope(configurable, scope) : configurable;
}

/** LangGraph reads the states of subgraphs without the scope. */
const scopeOf = (config: RunnableConfig): Scope =>
  (config.configurable?.[SCOPE] as Scope | undefined) ?? { metadata: {}, hideResumes: true };

const PAGE_SIZE = 50;

const EMPTY: Stored = { type: "empty", value: "" };

/**
 * Creates a LangGraph checkpointer that serializes here and stores through the service. One instance serves all graphs and runs of a host
 * that share a library; the scope in the config distinguishes them.
 */
export function createCheckpointer(library: Library, service: ServiceConnection): BaseCheckpointSaver<string> {
  const { getCheckpointId, maxChannelVersion, WRITES_IDX_MAP } = library.checkpoint;
  return new (class HostCheckpointer extends library.checkpoint.BaseCheckpointSaver<string> {
    readonly #service = service;
    readonly #serializer = new StateSerializer(this.serde, library);

    /**
     * Returns a counter, which orders versions, and random digits. With only integers, a run after a rolled-back or forked run would reuse
     * its versions and read its values. For subgraphs LangGraph calls this method without `this`.
     */
    override getNextVersion(current: string | undefined): string {
      const counter = current === undefined ? 0 : Number.parseInt(String(current).split(".")[0] ?? "0", 10);
      return `${String(counter + 1).padStart(32, "0")}.${randomHex()}`;
    }

    override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
      const { thread_id, checkpoint_ns = "" } = config.configurable ?? {};
      if (thread_id === undefined) return undefined;
      const scope = scopeOf(config);
      const checkpoint_id = getCheckpointId(config) || undefined;
      if (scope.head && checkpoint_ns === "" && !checkpoint_id) {
        const { data } = scope.head;
        scope.head = undefined;
        return data ? this.#toTuple(data, config) : undefined;
      }
      const { run, without } = scope;
      const found =
        stagedCheckpoint(scope.staged, checkpoint_ns, checkpoint_id) ??
        (await this.#service.get(run, { op: "get", thread_id, checkpoint_ns, checkpoint_id, without }));
      return found && this.#toTuple(found, config);
    }

    override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
      const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable ?? {};
      let before = options.before?.configurable?.checkpoint_id as string | undefined;
      let left = options.limit ?? Number.POSITIVE_INFINITY;
      const { run } = scopeOf(config);
      while (left > 0) {
        const limit = Math.min(left, PAGE_SIZE);
        const { checkpoints: page, isWhole } = await this.#service.list(run, {
          op: "list",
          thread_id,
          checkpoint_ns,
          checkpoint_id,
          before,
          metadata: options.filter,
          limit,
        });
        for (const found of page) yield await this.#toTuple(found, config);
        if (isWhole && page.length < limit) return;
        left -= page.length;
        before = page.at(-1)?.checkpoint_id;
      }
    }

    override async put(
      config: RunnableConfig,
      checkpoint: Checkpoint,
      metadata: CheckpointMetadata,
      newVersions: ChannelVersions,
    ): Promise<RunnableConfig> {
      const { thread_id, checkpoint_ns = "", checkpoint_id: parent } = config.configurable ?? {};
      if (thread_id === undefined) throw new Error("To store a checkpoint, set configurable.thread_id in the config.");
      const { channel_values, ...rest } = checkpoint;
      const scope = scopeOf(config);
      const allMetadata = { ...scope.metadata, ...metadata };
      const changed = Object.keys(newVersions);
      const mustWait = scope.commits?.mustWaitFor({ checkpoint_ns, checkpoint, metadata, changed }) ?? true;
      const row = {
        thread_id,
        checkpoint_ns,
        checkpoint_id: checkpoint.id,
        parent_checkpoint_id: parent ?? null,
        checkpoint: JSON.stringify(rest),
        metadata: JSON.stringify(allMetadata),
        // A staged checkpoint is read before it is stored, so it contains all values, not only changed ones.
        values: await this.#serializeValues(channel_values, scope.staged ? checkpoint.channel_versions : newVersions),
      };
      scope.head = undefined;
      if (scope.staged) scope.staged.puts.push(row);
      else await this.#store(scope, { op: "put", checkpoint: row }, mustWait);
      return { configurable: keepScope(config, { thread_id, checkpoint_ns, checkpoint_id: checkpoint.id }) };
    }

    override async putWrites(
      config: RunnableConfig,
      writes: PendingWrite[],
      task_id: string,
      task_path = "",
    ): Promise<void> {
      const { thread_id, checkpoint_ns = "", checkpoint_id } = config.configurable ?? {};
      if (thread_id === undefined)
        throw new Error("To store pending writes, set configurable.thread_id in the config.");
      if (checkpoint_id === undefined)
        throw new Error("To store pending writes, set configurable.checkpoint_id in the config.");
      const rows: WriteData[] = await Promise.all(
        writes.map(async ([channel, written], position) => {
          const stored = await this.#serializer.dump(written);
          return { task_id, task_path, idx: WRITES_IDX_MAP[channel] ?? position, channel, ...stored };
        }),
      );
      const scope = scopeOf(config);
      const at = { thread_id, checkpoint_ns, checkpoint_id, writes: rows };
      if (scope.staged) scope.staged.writes.push(at);
      // Writes of tasks take effect with the next checkpoint, so the run does not wait for them.
      else await this.#store(scope, { op: "put_writes", ...at }, false);
    }

    async #store({ run }: Scope, write: CheckpointWrite, mustWait: boolean): Promise<void> {
      if (run && !mustWait) this.#service.store(run, write);
      else await this.#service.request(run, write);
    }

    /** Always fails, because the service refuses this request: threads are deleted through the API. */
    override async deleteThread(thread_id: string): Promise<void> {
      await this.#service.request(undefined, { op: "delete_thread", thread_id });
    }

    /** Adds the channel of sends. Before version 4 of the format, they were writes of the parent checkpoint. */
    async #migrateSends(
      checkpoint: Checkpoint,
      channel_values: Record<string, unknown>,
      child: CheckpointData,
      { run, without }: Scope,
    ): Promise<void> {
      const { thread_id, checkpoint_ns, parent_checkpoint_id } = child;
      const checkpoint_id = parent_checkpoint_id ?? undefined;
      const parent = await this.#service.get(run, { op: "get", thread_id, checkpoint_ns, checkpoint_id, without });
      const sends = (parent?.writes ?? []).filter(({ channel }) => channel === TASKS);
      channel_values[TASKS] = await Promise.all(sends.map((write) => this.#serializer.load(write)));
      const versions = Object.values(checkpoint.channel_versions) as string[];
      checkpoint.channel_versions[TASKS] =
        versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
    }

    async #serializeValues(values: Record<string, unknown>, versions: ChannelVersions): Promise<ValueData[]> {
      return Promise.all(
        Object.entries(versions).map(async ([channel, version]) => {
          const stored = channel in values ? await this.#serializer.dump(values[channel]) : EMPTY;
          return { channel, version: String(version), ...stored };
        }),
      );
    }

    async #toTuple(data: CheckpointData, asked: RunnableConfig): Promise<CheckpointTuple> {
      const { thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id } = data;
      const checkpoint = JSON.parse(data.checkpoint) as Checkpoint;
      const present = data.values.filter(({ type }) => type !== "empty");
      const values = await Promise.all(
        present.map(async (stored) => [stored.channel, await this.#serializer.load(stored)] as const),
      );
      const { isResumeConsumed, hideResumes } = scopeOf(asked);
      const load = async (write: WriteData): Promise<[string, string, unknown]> => [
        write.task_id,
        write.channel,
        await this.#serializer.load(write),
      ];
      const visible = data.writes.filter(
        (write) => !(isResumeConsumed && isPendingResume(write)) && !(hideResumes && isResume(write)),
      );
      const pendingWrites = await Promise.all(visible.map(load));
      const channel_values: Record<string, unknown> = Object.fromEntries(values);
      if (checkpoint.v < 4 && parent_checkpoint_id)
        await this.#migrateSends(checkpoint, channel_values, data, scopeOf(asked));
      return {
        config: { configurable: keepScope(asked, { thread_id, checkpoint_ns, checkpoint_id }) },
        checkpoint: { ...checkpoint, channel_values },
        metadata: JSON.parse(data.metadata),
        pendingWrites,
        ...(parent_checkpoint_id && {
          parentConfig: {
            configurable: keepScope(asked, { thread_id, checkpoint_ns, checkpoint_id: parent_checkpoint_id }),
          },
        }),
      };
    }
  })();
}

function stagedCheckpoint(staged: Scope["staged"], ns: string, id: string | undefined): CheckpointData | undefined {
  const put = staged?.puts.findLast(
    (row) => row.checkpoint_ns === ns && (id === undefined || row.checkpoint_id === id),
  );
  if (!staged || !put) return undefined;
  const writes = staged.writes.filter((row) => row.checkpoint_id === put.checkpoint_id && row.checkpoint_ns === ns);
  return { ...put, writes: writes.flatMap((row) => row.writes) };
}

/** Returns 16 random hexadecimal digits. UUIDs are the fastest source, because Node.js generates their bits in bulk. */
function randomHex(): string {
  const uuid = randomUUID();
  return uuid.slice(-12) + uuid.slice(0, 4);
}
