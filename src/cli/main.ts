import { Command, Option } from "commander";
import { type Config, type Flags, readConfig, readStorageConfig } from "../config/config.ts";
import type { Threadmill } from "../main.ts";
import { ConfigError } from "../platform/errors.ts";
import { STUDIO_ORIGIN } from "../platform/lib/cors.ts";
import { createLog, type Log } from "../platform/lib/log.ts";
import { addDeployCommand } from "./deploy/command.ts";
import { addDeploymentCommands } from "./deployments/command.ts";
import { addExperimentCommands } from "./experiments/command.ts";
import { addKeyCommands } from "./keys/command.ts";
import { letYoungGenerationGrow } from "./young-generation.ts";

/** Exit status for a mistake in configuration or usage. */
const USAGE = 2;

const STORAGE_OPTIONS = [
  new Option("--data <folder>", "folder of the embedded database (default: .threadmill)"),
  new Option("--database-url <url>", "use Postgres: postgres://user:password@host/database (or DATABASE_URL)"),
  new Option("--log-level <level>", "debug, info, warn, error or silent (default: info)"),
];

const SERVER_OPTIONS = [
  new Option("--config <file>", "langgraph.json of the project").default("langgraph.json", "./langgraph.json"),
  ...STORAGE_OPTIONS,
  new Option("--host <address>", "address to listen on (default: 127.0.0.1)"),
  new Option("--port <number>", "port to listen on (default: 2024, or PORT)"),
  new Option("--hosts <number>", "graph hosts for runs (default: cores - 1)"),
  new Option("--inline", "run graphs on the serving thread, for debuggers"),
  new Option("--studio", "let the hosted Studio use the agent server, and print its address"),
  new Option("--only <part>", "serve nothing but this part: agents").choices(["agents"]),
  new Option("--share-data", "let other processes of this machine that say so, too, work on the same data folder"),
  new Option("--listen-fd <number>", "take a listening socket that is open already, instead of --host and --port"),
];

/** Reads the command line and does what it says. */
export async function runCli(argv: string[]): Promise<void> {
  const program = new Command("threadmill").description("An open, self-hosted home for running agents.").exitOverride();
  const add = (
    name: Config["command"] | "migrate",
    description: string,
    options: Option[],
    run: (flags: Flags) => Promise<void>,
  ) => {
    const command = program.command(name).description(description).exitOverride();
    for (const option of options) command.addOption(option);
    command.action(run);
  };
  add("dev", "serve for development: reloads when files change", SERVER_OPTIONS, (flags) => serve("dev", flags));
  add("serve", "serve for production", SERVER_OPTIONS, (flags) => serve("serve", flags));
  add("migrate", "bring the database to this version's schema, then exit", STORAGE_OPTIONS, migrateOnly);
  addKeyCommands(program, STORAGE_OPTIONS);
  addExperimentCommands(program);
  addDeployCommand(program);
  addDeploymentCommands(program);
  try {
    await program.parseAsync(argv);
  } catch (error) {
    exitWith(error);
  }
}

function exitWith(error: unknown): never {
  const { exitCode, code, message } = error as { exitCode?: number; code?: string; message: string };
  // Commander has already printed what it has to say.
  if (code?.startsWith("commander.")) process.exit(exitCode === 0 ? 0 : USAGE);
  if (error instanceof ConfigError) {
    console.error(message);
    process.exit(USAGE);
  }
  if (code === "EADDRINUSE" || code === "EACCES" || code === "EADDRNOTAVAIL") {
    console.error(`The address cannot be listened on (${message}): choose another with --port or --host.`);
    process.exit(USAGE);
  }
  console.error(error);
  process.exit(1);
}

async function serve(command: Config["command"], flags: Flags): Promise<void> {
  const started_at = performance.now();
  const config = readConfig(command, flags, process.env);
  if (config.inline) giveToGraphs(config.graph_env);
  const log = createLog(config.log_level);
  if (config.ignored_fields.length > 0)
    console.error(`${config.config_file}: these fields have no effect: ${config.ignored_fields.join(", ")}.`);
  // Loaded here: what a command does not need would double the time of its start.
  const { listen, startThreadmill } = await import("../main.ts");
  const { watchGraphs } = await import("./watch.ts");
  const service = await startThreadmill(config, log);
  const loaded = service.loaded.catch((error: Error) => ({ "(all)": error.message }));
  if (command === "serve") refuseBroken(await loaded, config);
  const listening = await listen(config, service);
  // Modules that the serving thread itself has loaded stay loaded.
  const watcher = command === "dev" && !config.inline ? await watchGraphs(config, flags, service, log) : undefined;
  // Before the announcement: whoever reads it may send a signal at once.
  stopOnSignals(async () => {
    await watcher?.close();
    await listening.stop();
  });
  announce(config, service, listening.url, started_at);
  void loaded.then(letYoungGenerationGrow);
  if (command === "dev") void loaded.then(reportFailures);
  if (config.control_plane_file !== undefined) void endWithoutControlPlane(config, config.control_plane_file, log);
}

/** An instance of a deployment that no control plane keeps ends in order, with all that its graphs have started. */
async function endWithoutControlPlane(config: Config, heartbeat_file: string, log: Log): Promise<void> {
  const [{ orphaned }, { killGroup }] = await Promise.all([
    import("../control-plane/drivers/process/heartbeat.ts"),
    import("../control-plane/drivers/process/process-identity.ts"),
  ]);
  log.warn({ reason: await orphaned({ ...config, heartbeat_file }) }, "instance without a control plane stops");
  process.on("exit", () => killGroup(process.pid));
  process.kill(process.pid, "SIGTERM");
}

/** Graphs on the serving thread have no environment of their own: theirs becomes that of the process. */
function giveToGraphs(graph_env: Config["graph_env"]): void {
  for (const name of Object.keys(process.env)) if (!(name in graph_env)) delete process.env[name];
  Object.assign(process.env, graph_env);
}

/** The first signal stops in good order. The second means: now; leases cover the rest. */
function stopOnSignals(stop: () => Promise<void>): void {
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      if (process.stdout.isTTY)
        console.log("\n  Stopping: runs may end or are handed back. The same again stops at once.");
      stop().then(() => process.exit(0), exitWith);
    });
  }
}

function announce(config: Config, service: Threadmill, url: string, started_at: number): void {
  const ms = Math.round(performance.now() - started_at);
  const news = `Threadmill ${config.threadmill_version} is up (${ms} ms)`;
  // What a deployment's process says is read by its users, whom the folders of the service are no business of.
  if (config.only) console.log(news);
  else
    console.log(`
  ${news}

  API       ${url}
  Docs      ${url}/docs${config.cors.studio ? `\n  Studio    ${studioAddress(url)}` : ""}
  Graphs    ${config.graphs.map((graph) => graph.graph_id).join(", ")}
  Database  ${service.database}
`);
}

const studioAddress = (url: string): string => `${STUDIO_ORIGIN}/studio/?${new URLSearchParams({ baseUrl: url })}`;

/** What goes into production must be whole. */
function refuseBroken(failures: Record<string, string>, config: Config): void {
  const reasons = Object.entries(failures).map(
    ([graph_id, reason]) => `graphs.${graph_id} could not be loaded (${reason})`,
  );
  if (reasons.length === 0) return;
  throw new ConfigError(
    `${config.config_file}: ${reasons.join("; ")}. Correct it, or use "threadmill dev" to start without it.`,
  );
}

function reportFailures(failures: Record<string, string>): void {
  for (const [graph_id, reason] of Object.entries(failures)) {
    console.error(
      `The graph "${graph_id}" could not be loaded: ${reason}. Runs of it are refused until it is corrected.`,
    );
  }
}

async function migrateOnly(flags: Flags): Promise<void> {
  const config = readStorageConfig(flags, process.env);
  const log = createLog(config.log_level);
  const [{ migrate }, { MIGRATIONS }, { openDatabase }] = await Promise.all([
    import("../platform/database/migrate.ts"),
    import("../app/compose/migrations.ts"),
    import("../app/compose/open-data.ts"),
  ]);
  for (const part of ["agents", "experiments"] as const) {
    const database = openDatabase(config, "full", log, part);
    try {
      const applied = await migrate(database, MIGRATIONS[part]);
      const { description } = database;
      console.log(
        applied.length > 0 ? `Applied ${applied.join(", ")} to ${description}.` : `${description} is up to date.`,
      );
    } finally {
      await database.close();
    }
  }
}
