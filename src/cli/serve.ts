import { setTimeout as sleep } from "node:timers/promises";
import v8 from "node:v8";
import { type Config, type Flags, readConfig } from "../config/config.ts";
import { HTTP_APP } from "../config/http.ts";
import { UI } from "../config/ui.ts";
import type { Threadmill } from "../main.ts";
import { ConfigError } from "../platform/errors.ts";
import { STUDIO_ORIGIN } from "../platform/lib/cors.ts";
import { createLog, type Log } from "../platform/lib/log.ts";
import { stopGrowth } from "../platform/lib/thread-heap.ts";

/** Runs `dev` or `serve`. Resolves when the service accepts requests; it then runs until a signal arrives. */
export async function serve(command: Config["command"], flags: Flags): Promise<void> {
  const started_at = performance.now();
  const config = readConfig(command, flags, process.env);
  if (config.inline) exposeToGraphs(config.graph_env);
  const log = createLog(config.log_level);
  if (config.ignored_fields.length > 0)
    console.error(
      `warning: ${config.config_file} contains fields that have no effect: ${config.ignored_fields.join(", ")}.`,
    );
  if (config.unknown_variables.length > 0)
    console.error(
      `warning: unknown settings: ${config.unknown_variables.join(", ")}. See docs/configuration.md for all settings.`,
    );
  if (config.worker_process) (await import("./worker-processes.ts")).followService();
  // All further modules are imported after the configuration is read, which halves the time until a configuration error is reported.
  const { startFirstHost } = await import("../app/compose/graph-hosts.ts");
  const startHost = startFirstHost(config);
  const { listen, startThreadmill } = await import("../main.ts");
  const dev = command === "dev" ? await import("./watch-graphs.ts") : undefined;
  const service = await startThreadmill(config, log, startHost);
  const loaded = service.loaded.catch((error: Error) => ({ "(all)": error.message }));
  if (command === "serve") rejectLoadFailures(await loaded, config);
  const listening = await listen(config, service);
  // With --inline, graphs are not reloaded: they are modules of the serving thread, and modules cannot be unloaded.
  const workers =
    config.workers > 0 ? await (await import("./worker-processes.ts")).startWorkerProcesses(config, log) : undefined;
  const watcher = config.inline ? undefined : await dev?.watchGraphs(config, flags, service, log);
  // Installed before the banner: a program that waits for the banner may send a signal at once.
  // A worker process gets the signal of its service, and possibly that of a supervisor to all processes.
  stopOnSignals(log, { isRepeatable: config.worker_process }, async () => {
    await watcher?.close();
    if (workers) {
      await workers.stop();
      // Open streams poll once more for the last events of these runs.
      await sleep(2 * config.poll_ms);
    }
    await listening.stop();
  });
  const duration_ms = Math.round(performance.now() - started_at);
  if (config.worker_process) process.send?.({ ready: listening.url });
  else printBanner(config, service, listening.url, duration_ms);
  logStart(config, service, listening.url, duration_ms, log);
  void loaded.then(growYoungGeneration);
  if (dev) void loaded.then(dev.printLoadFailures);
  if (config.control_plane_file !== undefined) void stopWithoutControlPlane(config, config.control_plane_file, log);
}

function printBanner(config: Config, service: Threadmill, url: string, duration_ms: number): void {
  const { role, workers } = config;
  const form = workers > 0 ? `, worker processes: ${workers}` : role === "all" ? "" : `, role ${role}`;
  const headline = `Threadmill ${config.threadmill_version} is up (${duration_ms} ms)${form}`;
  // Users of a deployment can read the output of its instances, which must therefore not contain paths of the service.
  if (config.only) console.log(headline);
  else if (role === "worker")
    console.log(`
  ${headline}

  Health    ${url}/ok
  Metrics   ${url}/metrics
  Graphs    ${config.graphs.map((graph) => graph.graph_id).join(", ")}
  Database  ${service.database}
`);
  else
    console.log(`
  ${headline}

  Web app   ${url}/app
  API       ${url}
  API docs  ${url}/docs${config.cors.studio ? `\n  Studio    ${studioUrl(url)}` : ""}
  Graphs    ${config.graphs.map((graph) => graph.graph_id).join(", ")}
  Database  ${service.database}
`);
}

const studioUrl = (url: string): string => `${STUDIO_ORIGIN}/studio/?${new URLSearchParams({ baseUrl: url })}`;

function logStart(config: Config, service: Threadmill, url: string, duration_ms: number, log: Log): void {
  const { command, role, threadmill_version: version, only, changed_settings: settings } = config;
  log.info(
    { command, role, version, settings, ...(!only && { url, database: service.database }), duration_ms },
    "service started",
  );
}

/**
 * The first signal drains the runs and stops the service. The second exits at once, unless signals are repeatable; runs are requeued when
 * their leases expire.
 */
function stopOnSignals(log: Log, { isRepeatable }: { isRepeatable: boolean }, stop: () => Promise<void>): void {
  let stopping_since: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping_since !== undefined && isRepeatable) return;
      if (stopping_since !== undefined) process.exit(1);
      const began = performance.now();
      stopping_since = began;
      if (process.stdout.isTTY)
        console.log("\n  Stopping: waiting for runs to finish or return to the queue. Press Ctrl+C again to exit now.");
      stop().then(
        () => {
          log.info({ reason: signal, duration_ms: Math.round(performance.now() - began) }, "service stopped");
          process.exit(0);
        },
        (error) => {
          console.error(error);
          process.exit(1);
        },
      );
    });
  }
}

/** Stops this deployment instance and its child processes when the control plane no longer updates `heartbeat_file`. */
async function stopWithoutControlPlane(config: Config, heartbeat_file: string, log: Log): Promise<void> {
  const [{ waitUntilOrphaned }, { killGroup }] = await Promise.all([
    import("../control-plane/drivers/process/heartbeat.ts"),
    import("../control-plane/drivers/process/process-identity.ts"),
  ]);
  log.warn(
    { reason: await waitUntilOrphaned({ ...config, heartbeat_file }) },
    "the control plane no longer manages this instance; stopping the instance",
  );
  process.on("exit", () => killGroup(process.pid));
  process.kill(process.pid, "SIGTERM");
}

/** Graphs on the serving thread share the environment of the process, so it is replaced with the environment of the graphs. */
function exposeToGraphs(graph_env: Config["graph_env"]): void {
  for (const name of Object.keys(process.env)) if (!(name in graph_env)) delete process.env[name];
  Object.assign(process.env, graph_env);
}

/** @throws ConfigError when a graph, the HTTP app or the UI could not be loaded */
function rejectLoadFailures(failures: Record<string, string>, config: Config): void {
  const reasons = Object.entries(failures).map(
    ([name, reason]) => `${[HTTP_APP, UI].includes(name) ? name : `graphs.${name}`} could not be loaded (${reason})`,
  );
  if (reasons.length === 0) return;
  const problem = reasons.join("; ");
  // Users of a deployment read this message, too: see printBanner.
  if (config.only) throw new ConfigError(`${problem}. Fix the code and deploy again.`);
  throw new ConfigError(
    `${problem}. Fix the code, or use "threadmill dev", which starts without the parts that fail to load. Config file: ${config.config_file}.`,
  );
}

/** V8 never shrinks its young generation. This limit saves 150 MB after peak load and does not reduce throughput. */
const MAX_YOUNG_GENERATION_BYTES = 16 * 1024 * 1024;
/** Of threads that start after that: a third of the limit of a graph host. With V8's initial 1 MB, reading a history takes 4 ms more. */
const LATER_SEMI_SPACE_MB = 8;
const CHECK_INTERVAL_MS = 200;

/** Lets the young generation, whose growth bin/threadmill.js disables while modules load, grow to its maximum size. */
function growYoungGeneration(): void {
  // Restores V8's default factor.
  v8.setFlagsFromString("--semi-space-growth-factor=2");
  const timer = setInterval(() => {
    const young = v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space");
    if (young && young.space_size < MAX_YOUNG_GENERATION_BYTES) return;
    stopGrowth(LATER_SEMI_SPACE_MB);
    clearInterval(timer);
  }, CHECK_INTERVAL_MS).unref();
}
