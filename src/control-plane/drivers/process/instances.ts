import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { access, chmod, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../../platform/lib/log.ts";
import { type DeploymentDatabases, dataFolder } from "../deployment-data.ts";
import { DeployError, type InstanceCondition, type InstanceRef, type InstanceSpec } from "../driver.ts";
import { lastErrorIn } from "../log-line.ts";
import { buildFolder, type Folders, logFile } from "./folders.ts";
import {
  handleOf,
  type InstanceRecord,
  listRecords,
  processOf,
  readRecord,
  removeRecord,
  runningProcess,
  writeRecord,
} from "./instance-record.ts";
import { launch, listenOnFreePort } from "./launch.ts";
import { LogTail, offsetFile, readStderrTail } from "./log-tail.ts";
import { isAlive, killGroup, type ProcessIdentity, signalProcess, startOf } from "./process-identity.ts";
import { configPathOf } from "./source/project.ts";
import { chownTreeIfRoot, type SystemUsers } from "./system-users.ts";

interface ProcessSettings {
  folders: Folders;
  /** Path of the Threadmill executable. */
  program: string;
  system_env: Readonly<Record<string, string>>;
  databases: DeploymentDatabases;
  /** Returns the system users. Also creates the folders and package links that instances need. */
  users(): Promise<SystemUsers>;
  orphan_ms: number;
  log: Log;
}

const EXIT_POLL_MS = 25;
/** Time limit for the end of a process after SIGKILL. */
const KILL_TIMEOUT_MS = 5_000;

/** Exit status of Threadmill after a configuration error. A retry cannot fix the error. */
const CONFIG_ERROR_STATUS = 2;

/** Runs instances as processes. After a restart, the service finds a process by its record. */
export class Instances {
  readonly #settings: ProcessSettings;
  readonly #tails = new Map<string, LogTail>();
  readonly #starting = new Map<string, Promise<InstanceRef>>();
  /**
   * Promises by handle. Each promise resolves when the exit of the process is recorded. Contains only processes that this object started.
   */
  readonly #exits = new Map<string, Promise<void>>();

  constructor(settings: ProcessSettings) {
    this.#settings = settings;
  }

  /** @throws DeployError when the build was removed, the last start ended with a configuration error, or the database cannot be created */
  ensure(spec: InstanceSpec): Promise<InstanceRef> {
    const { instance_id } = spec;
    const running = this.#starting.get(instance_id);
    if (running) return running;
    const starting = this.#ensure(spec).finally(() => this.#starting.delete(instance_id));
    this.#starting.set(instance_id, starting);
    return starting;
  }

  async #ensure(spec: InstanceSpec): Promise<InstanceRef> {
    const { folders } = this.#settings;
    const record = await this.#record(spec.instance_id);
    const running = record && (await runningProcess(record));
    if (record && running) {
      if (!record.process) await writeRecord(folders, { ...record, process: running });
      await this.#follow(spec);
      return refOf(record, running);
    }
    if (record?.ended?.status === CONFIG_ERROR_STATUS) {
      // The next call starts the instance again, because the cause may be outside of the source.
      await writeRecord(folders, { ...record, ended: undefined });
      const stderr = await readStderrTail(logFile(folders, spec.instance_id));
      const built = buildFolder(folders, spec.deployment_id, spec.artifact);
      throw new DeployError(stderr === "" ? SILENT_EXIT : shortened(stderr, built));
    }
    if (record?.process) this.#exits.delete(handleOf(record.process));
    return this.#start(spec);
  }

  async #start(spec: InstanceSpec): Promise<InstanceRef> {
    const { folders, program, system_env, databases, users, orphan_ms, log } = this.#settings;
    const { instance_id, deployment_id, revision_id, artifact } = spec;
    const built = buildFolder(folders, deployment_id, artifact);
    const config_file = join(built, configPathOf(spec.config_path));
    await access(config_file).catch(() => {
      throw new DeployError("The build of this revision was removed: create a new revision from the same source.");
    });
    const user = await (await users()).of(deployment_id);
    if (user) {
      // Earlier versions of Threadmill created builds that root owns.
      await chmod(dirname(built), 0o711);
      await chownTreeIfRoot(built, user);
    }
    const database_url = await databases.of(spec);
    const listener = await listenOnFreePort();
    const address = `http://127.0.0.1:${listener.port}`;
    const record: InstanceRecord = { instance_id, deployment_id, revision_id, address, process: undefined };
    // Written before the start, so that a crash after the start leaves no process without a record.
    await writeRecord(folders, record);
    const data_dir = dataFolder(folders, deployment_id);
    const log_file = logFile(folders, instance_id);
    let child: ChildProcess | undefined;
    try {
      const orphan_limits = { heartbeat_file: folders.heartbeat, data_dir, orphan_ms };
      const options = { spec, program, config_file, database_url, log_file, system_env, user, ...orphan_limits };
      child = await launch(options, listener);
      const pid = child.pid as number;
      const exit = once(child, "exit");
      // The rest of the group is killed immediately, because the system can reuse the group ID later.
      child.once("exit", () => killGroup(pid));
      const identity = { pid, started: (await startOf(pid)) ?? "exited" };
      await writeRecord(folders, { ...record, process: identity });
      const recorded = this.#recordExit({ ...record, process: identity }, exit);
      this.#exits.set(
        handleOf(identity),
        recorded.catch((error) => log.warn({ error, instance_id }, "could not record the exit of an instance")),
      );
      await this.#follow(spec);
      return refOf(record, identity);
    } catch (error) {
      // Without a record, nothing would find and stop it.
      if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null) killGroup(child.pid);
      await removeRecord(folders, instance_id);
      throw error;
    } finally {
      listener.server.close();
    }
  }

  async #recordExit(record: InstanceRecord, exit: Promise<unknown[]>): Promise<void> {
    const [status, signal] = (await exit) as [number | null, string | null];
    const current = await readRecord(this.#settings.folders, record.instance_id);
    if (current?.process?.pid !== record.process?.pid) return;
    await writeRecord(this.#settings.folders, { ...record, ended: { status, signal } });
  }

  /** Reads the record of an instance. If the process has just ended, waits until the exit is recorded. */
  async #record(instance_id: string): Promise<InstanceRecord | undefined> {
    const { folders } = this.#settings;
    const record = await readRecord(folders, instance_id);
    if (!record?.process || record.ended || (await isAlive(record.process))) return record;
    await this.#exits.get(handleOf(record.process));
    return readRecord(folders, instance_id);
  }

  async probe(ref: InstanceRef): Promise<InstanceCondition> {
    const identity = processOf(ref.handle);
    if (identity && (await isAlive(identity))) return { state: "running" };
    const { folders } = this.#settings;
    const record = await this.#record(ref.instance_id);
    const ended = record?.process && handleOf(record.process) === ref.handle ? record.ended : undefined;
    const stderr = await readStderrTail(logFile(folders, ref.instance_id));
    return { state: "ended", reason: `${exitReason(ended)}${stderr === "" ? "" : `: ${stderr}`}` };
  }

  async stop({ instance_id, handle }: InstanceRef, grace_ms: number): Promise<void> {
    const { folders } = this.#settings;
    const record = await readRecord(folders, instance_id);
    const recorded = record && (await runningProcess(record));
    const named = processOf(handle);
    // The caller's handle may be from an earlier start than the record.
    for (const identity of [recorded, named]) if (identity) await endProcess(identity, grace_ms);
    await this.#tails.get(instance_id)?.stop({ last: true });
    this.#tails.delete(instance_id);
    const log = logFile(folders, instance_id);
    await Promise.all([log, offsetFile(log)].map((file) => rm(file, { force: true })));
    await removeRecord(folders, instance_id);
    for (const identity of [recorded, named]) if (identity) this.#exits.delete(handleOf(identity));
  }

  /** Stops all instances, including those that an earlier process of the service started. */
  async stopAll(grace_ms: number): Promise<void> {
    await Promise.allSettled(this.#starting.values());
    await Promise.all((await this.list()).map((ref) => this.stop(ref, grace_ms)));
  }

  async list(): Promise<InstanceRef[]> {
    const refs: InstanceRef[] = [];
    for (const record of await listRecords(this.#settings.folders)) {
      const identity = record.process ?? (await runningProcess(record));
      refs.push(refOf(record, identity ?? { pid: 0, started: "never" }));
    }
    return refs;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#tails.values()].map((tail) => tail.stop({ last: false })));
    this.#tails.clear();
  }

  /** Sends the output of an instance to `spec.log`, starting at the stored position. */
  async #follow(spec: InstanceSpec): Promise<void> {
    const { folders, log } = this.#settings;
    const { instance_id } = spec;
    await this.#tails.get(instance_id)?.stop({ last: false });
    const onError = (error: unknown) => log.warn({ error, instance_id }, "could not read the instance log");
    this.#tails.set(instance_id, new LogTail(logFile(folders, instance_id), spec, onError));
  }
}

const refOf = ({ instance_id, deployment_id, revision_id, address }: InstanceRecord, identity: ProcessIdentity) => ({
  instance_id,
  deployment_id,
  revision_id,
  handle: handleOf(identity),
  address,
});

const SILENT_EXIT = `The agent server exited with status ${CONFIG_ERROR_STATUS} (configuration error) and wrote no output. Check the secrets of the deployment and its langgraph.json.`;

/** Removes the path of the build folder, which a user cannot see, from the error of an instance. */
const shortened = (output: string, built: string): string =>
  lastErrorIn(output).replaceAll(`${built}/`, "").replaceAll(built, "the project folder");

function exitReason(ended: InstanceRecord["ended"]): string {
  if (!ended) return "the process no longer exists";
  return ended.signal ? `the process was killed by ${ended.signal}` : `the process exited with status ${ended.status}`;
}

/** Sends SIGTERM to a process, and kills the process group after the grace period. Never affects a later process with the same pid. */
async function endProcess(identity: ProcessIdentity, grace_ms: number): Promise<void> {
  if (!(await isAlive(identity))) return;
  signalProcess(identity.pid, "SIGTERM");
  await exitedWithin(identity, grace_ms);
  // The process was running a moment ago, so the group ID was not reused.
  killGroup(identity.pid);
  if (!(await exitedWithin(identity, KILL_TIMEOUT_MS)))
    throw new Error(`The instance process ${identity.pid} is still running after SIGKILL.`);
}

async function exitedWithin(identity: ProcessIdentity, ms: number): Promise<boolean> {
  for (const deadline = performance.now() + ms; await isAlive(identity); ) {
    if (performance.now() >= deadline) return false;
    await delay(EXIT_POLL_MS);
  }
  return true;
}
