import { once } from "node:events";
import { access, chmod, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../../platform/lib/log.ts";
import { dataFolder } from "../data-folder.ts";
import { DeployError, type InstanceCondition, type InstanceOrder, type InstanceRef } from "../driver.ts";
import type { OwnDatabases } from "../own-databases.ts";
import { buildFolder, type Folders, logFile } from "./folders.ts";
import {
  handleOf,
  type InstanceRecord,
  listRecords,
  livingProcess,
  processOf,
  readRecord,
  removeRecord,
  writeRecord,
} from "./instance-record.ts";
import { lastWords } from "./last-words.ts";
import { launch, listenForIt } from "./launch.ts";
import { LogTail, offsetFile } from "./log-tail.ts";
import { isAlive, killGroup, type ProcessIdentity, signalProcess, startOf } from "./process-identity.ts";
import { configPathOf } from "./source/project-file.ts";
import { giveOnce, type SystemUsers } from "./system-users.ts";

export interface InstanceSettings {
  folders: Folders;
  /** The executable of Threadmill. */
  program: string;
  system_env: Readonly<Record<string, string>>;
  databases: OwnDatabases;
  /** Also makes what instances need besides their build. */
  users(): Promise<SystemUsers>;
  orphan_ms: number;
  log: Log;
}

/** How often a process that was asked to end is looked at. */
const LOOK_MS = 25;
/** What was ended by force is gone after this, or never will be. */
const GONE_WITHIN_MS = 5_000;

/** The status with which Threadmill refuses to start: nothing but a change of the source or its settings helps. */
const MISTAKEN = 2;

/** The processes of deployments. Each is known by a record, so that a service that starts anew finds it. */
export class Instances {
  readonly #settings: InstanceSettings;
  readonly #tails = new Map<string, LogTail>();
  readonly #starting = new Map<string, Promise<InstanceRef>>();
  /** By handle: when the end of a process that was started here has been noted. */
  readonly #ends = new Map<string, Promise<void>>();

  constructor(settings: InstanceSettings) {
    this.#settings = settings;
  }

  /** @throws DeployError when there is nothing to start, or the last start failed because of what the user brought */
  ensure(order: InstanceOrder): Promise<InstanceRef> {
    const { instance_id } = order;
    const under_way = this.#starting.get(instance_id);
    if (under_way) return under_way;
    const starting = this.#ensure(order).finally(() => this.#starting.delete(instance_id));
    this.#starting.set(instance_id, starting);
    return starting;
  }

  async #ensure(order: InstanceOrder): Promise<InstanceRef> {
    const { folders } = this.#settings;
    const record = await this.#record(order.instance_id);
    const living = record && (await livingProcess(record));
    if (record && living) {
      if (!record.process) await writeRecord(folders, { ...record, process: living });
      await this.#follow(order);
      return refOf(record, living);
    }
    if (record?.ended?.status === MISTAKEN) {
      // The next time it is tried again: a mistake can be outside of the source, too.
      await writeRecord(folders, { ...record, ended: undefined });
      const said = await lastWords(logFile(folders, order.instance_id));
      throw new DeployError(said === "" ? "The agent server refused to start." : said);
    }
    if (record?.process) this.#ends.delete(handleOf(record.process));
    return this.#start(order);
  }

  async #start(order: InstanceOrder): Promise<InstanceRef> {
    const { folders, program, system_env, databases, users, orphan_ms, log } = this.#settings;
    const { instance_id, deployment_id, revision_id, artifact } = order;
    const built = buildFolder(folders, deployment_id, artifact);
    const config_file = join(built, configPathOf(order.config_path));
    await access(config_file).catch(() => {
      throw new DeployError("The build of this revision is gone: deploy its source again.");
    });
    const user = await (await users()).of(deployment_id);
    if (user) {
      // What was built before builds had users of their own.
      await chmod(dirname(built), 0o711);
      await giveOnce(built, user);
    }
    const database_url = await databases.of(order);
    const listener = await listenForIt();
    const address = `http://127.0.0.1:${listener.port}`;
    const record: InstanceRecord = { instance_id, deployment_id, revision_id, address, process: undefined };
    // Before the start, so that a crash right after it leaves no process that nobody knows of.
    await writeRecord(folders, record);
    const data_dir = dataFolder(folders, deployment_id);
    const log_file = logFile(folders, instance_id);
    try {
      const orphanhood = { heartbeat_file: folders.heartbeat, data_dir, orphan_ms };
      const what = { order, program, config_file, database_url, log_file, system_env, user, ...orphanhood };
      const child = await launch(what, listener);
      const pid = child.pid as number;
      const exit = once(child, "exit");
      // What it has left running goes at once: later the number of its group may be somebody else's.
      child.once("exit", () => killGroup(pid));
      const identity = { pid, started: (await startOf(pid)) ?? "gone" };
      await writeRecord(folders, { ...record, process: identity });
      const noted = this.#noteEnd({ ...record, process: identity }, exit);
      this.#ends.set(
        handleOf(identity),
        noted.catch((error) => log.warn({ error, instance_id }, "how an instance ended was not noted")),
      );
      await this.#follow(order);
      return refOf(record, identity);
    } catch (error) {
      await removeRecord(folders, instance_id);
      throw error;
    } finally {
      listener.server.close();
    }
  }

  /** Notes how a process that this one has started ended, so that it can be told. */
  async #noteEnd(record: InstanceRecord, exit: Promise<unknown[]>): Promise<void> {
    const [status, signal] = (await exit) as [number | null, string | null];
    const now = await readRecord(this.#settings.folders, record.instance_id);
    if (now?.process?.pid !== record.process?.pid) return;
    await writeRecord(this.#settings.folders, { ...record, ended: { status, signal } });
  }

  /** The record of an instance; of one whose process has just ended, with the news of that. */
  async #record(instance_id: string): Promise<InstanceRecord | undefined> {
    const { folders } = this.#settings;
    const record = await readRecord(folders, instance_id);
    if (!record?.process || record.ended || (await isAlive(record.process))) return record;
    await this.#ends.get(handleOf(record.process));
    return readRecord(folders, instance_id);
  }

  async probe(ref: InstanceRef): Promise<InstanceCondition> {
    const identity = processOf(ref.handle);
    if (identity && (await isAlive(identity))) return { state: "running" };
    const { folders } = this.#settings;
    const record = await this.#record(ref.instance_id);
    const ended = record?.process && handleOf(record.process) === ref.handle ? record.ended : undefined;
    const said = await lastWords(logFile(folders, ref.instance_id));
    return { state: "gone", reason: `${howItEnded(ended)}${said === "" ? "" : `: ${said}`}` };
  }

  async stop({ instance_id, handle }: InstanceRef, grace_ms: number): Promise<void> {
    const { folders } = this.#settings;
    const record = await readRecord(folders, instance_id);
    const recorded = record && (await livingProcess(record));
    const named = processOf(handle);
    // The row may know of a start before the last one.
    for (const identity of [recorded, named]) if (identity) await end(identity, grace_ms);
    await this.#tails.get(instance_id)?.stop({ last: true });
    this.#tails.delete(instance_id);
    const log = logFile(folders, instance_id);
    await Promise.all([log, offsetFile(log)].map((file) => rm(file, { force: true })));
    await removeRecord(folders, instance_id);
    for (const known of [recorded, named]) if (known) this.#ends.delete(handleOf(known));
  }

  /** Also those that an earlier control plane has started. */
  async stopAll(grace_ms: number): Promise<void> {
    await Promise.allSettled(this.#starting.values());
    await Promise.all((await this.list()).map((ref) => this.stop(ref, grace_ms)));
  }

  async list(): Promise<InstanceRef[]> {
    const refs: InstanceRef[] = [];
    for (const record of await listRecords(this.#settings.folders)) {
      const identity = record.process ?? (await livingProcess(record));
      refs.push(refOf(record, identity ?? { pid: 0, started: "never" }));
    }
    return refs;
  }

  /** Stops to listen to what instances say. */
  async close(): Promise<void> {
    await Promise.all([...this.#tails.values()].map((tail) => tail.stop({ last: false })));
    this.#tails.clear();
  }

  /** From here on this order is told what the instance writes, from where the last one has come to. */
  async #follow(order: InstanceOrder): Promise<void> {
    const { folders, log } = this.#settings;
    const { instance_id } = order;
    await this.#tails.get(instance_id)?.stop({ last: false });
    const onError = (error: unknown) => log.warn({ error, instance_id }, "lines of an instance were not told");
    this.#tails.set(instance_id, new LogTail(logFile(folders, instance_id), order, onError));
  }
}

const refOf = ({ instance_id, deployment_id, revision_id, address }: InstanceRecord, identity: ProcessIdentity) => ({
  instance_id,
  deployment_id,
  revision_id,
  handle: handleOf(identity),
  address,
});

function howItEnded(ended: InstanceRecord["ended"]): string {
  if (!ended) return "its process is gone";
  return ended.signal ? `it was ended by ${ended.signal}` : `it exited with status ${ended.status}`;
}

/** Asks a process to end, and ends it with all of its group after the grace. One that has its number by now is left alone. */
async function end(identity: ProcessIdentity, grace_ms: number): Promise<void> {
  if (!(await isAlive(identity))) return;
  signalProcess(identity.pid, "SIGTERM");
  await goneWithin(identity, grace_ms);
  // It was alive a moment ago, so the number of its group is nobody else's yet.
  killGroup(identity.pid);
  if (!(await goneWithin(identity, GONE_WITHIN_MS)))
    throw new Error(`The process ${identity.pid} of an instance cannot be ended.`);
}

async function goneWithin(identity: ProcessIdentity, ms: number): Promise<boolean> {
  for (const deadline = performance.now() + ms; await isAlive(identity); ) {
    if (performance.now() >= deadline) return false;
    await delay(LOOK_MS);
  }
  return true;
}
