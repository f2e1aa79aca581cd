import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Config } from "../config/config.ts";
import { connectService, connectWorker } from "../platform/database/sqlite/shared-hints.ts";
import { ConfigError } from "../platform/errors.ts";
import type { Log } from "../platform/lib/log.ts";

/** A process that ends sooner after its start is restarted after a longer pause. */
const STABLE_MS = 60_000;
const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
/** Time that a worker has to hand back runs and to stop, beyond the grace periods of its runs and of their current steps. */
const STOP_MS = 10_000;

export interface WorkerProcesses {
  /** Lets the runs finish or return to the queue, and resolves when all processes have ended. */
  stop(): Promise<void>;
}

/**
 * Starts the worker processes of a service, and restarts those that end. Resolves when all are ready.
 *
 * @throws ConfigError if one ends before it is ready, which prints its reason
 */
export async function startWorkerProcesses(config: Config, log: Log): Promise<WorkerProcesses> {
  const running = new Set<ChildProcess>();
  let isStopping = false;
  let stopped: () => void = () => undefined;
  const start = (pause_ms: number): ChildProcess => {
    const child = spawnWorker(config);
    const started_at = performance.now();
    running.add(child);
    connectWorker(child);
    const onEnd = (reason: object) => {
      if (!running.delete(child)) return;
      if (isStopping) return running.size === 0 ? stopped() : undefined;
      const next_ms = performance.now() - started_at > STABLE_MS ? MIN_PAUSE_MS : pause_ms;
      log.error({ pid: child.pid, ...reason, restart_in_ms: next_ms }, "worker process ended");
      setTimeout(() => restart(Math.min(2 * next_ms, MAX_PAUSE_MS)), next_ms);
    };
    child.once("exit", (exit_code, signal) => onEnd({ exit_code, signal }));
    // Not started, for lack of processes or file descriptors.
    child.on("error", (error) => child.pid === undefined && onEnd({ error }));
    child.on("message", (message: object) => {
      if ("ready" in message) log.info({ pid: child.pid, url: message.ready }, "worker process started");
    });
    return child;
  };
  const restart = (pause_ms: number) => {
    if (isStopping) return;
    try {
      start(pause_ms);
    } catch (error) {
      log.error({ error, restart_in_ms: MAX_PAUSE_MS }, "worker process could not be started");
      setTimeout(() => restart(pause_ms), MAX_PAUSE_MS);
    }
  };
  const stop = async () => {
    isStopping = true;
    if (running.size === 0) return;
    const ended = new Promise<void>((resolve) => (stopped = resolve));
    for (const child of running) child.kill("SIGTERM");
    const { shutdown_grace_ms: grace_ms } = config;
    const timer = setTimeout(
      () => {
        for (const child of running) child.kill("SIGKILL");
      },
      grace_ms + Math.max(grace_ms, 1_000) + STOP_MS,
    );
    await ended;
    clearTimeout(timer);
  };
  try {
    await Promise.all(Array.from({ length: config.workers }, () => untilReady(start(MIN_PAUSE_MS))));
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

/** Starts a process with the flags of this one, of which the last occurrence counts. */
function spawnWorker({ database_url }: Config): ChildProcess {
  const own = ["--workers", "0", "--role", "worker", "--worker-process", "--host", "127.0.0.1", "--port", "0"];
  if (!database_url) own.push("--share-data");
  const args = [...process.execArgv, ...process.argv.slice(1), ...own];
  // In a process group of its own: Ctrl+C reaches this process only, which then stops its workers.
  return spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"], detached: true });
}

async function untilReady(child: ChildProcess): Promise<void> {
  const ready = new Promise<true>((resolve) => {
    child.on("message", (message: object) => "ready" in message && resolve(true));
  });
  const isReady = await Promise.race([ready, once(child, "exit").then(() => false)]);
  if (!isReady)
    throw new ConfigError("A worker process ended before it was ready. See its output above for the reason.");
}

/** Called in a worker process when it starts. When its service ends, it stops like after a signal. */
export function followService(): void {
  process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));
  connectService();
}
