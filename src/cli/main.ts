import { Command, InvalidArgumentError, Option } from "commander";
import { type Config, type Flags, ownVersion, readStorageConfig } from "../config/config.ts";
import { type Setting, summaryOf } from "../config/settings/setting.ts";
import { SETTINGS } from "../config/settings/settings.ts";
import { DEFAULT_SCOPES, SCOPES } from "../platform/contract/caller.ts";
import { ConfigError } from "../platform/errors.ts";
import { isObject, type JsonObject, jsonOrUndefined } from "../platform/lib/json/json.ts";
import { createLog } from "../platform/lib/log.ts";
import {
  addOptions,
  addServiceCommand,
  JSON_OPTION,
  printError,
  serviceAction,
  WAIT_OPTIONS,
  wholeNumber,
} from "./command.ts";
import type { CreateFlags, RotateFlags } from "./keys.ts";

/** Exit status for invalid configuration or command-line arguments. */
const USAGE_STATUS = 2;

const plainText = (markdown: string) => markdown.replaceAll("`", "");

const STORAGE_OPTIONS = [
  ...optionsOf(SETTINGS["The database"]),
  ...optionsOf({ log_level: SETTINGS["The server"].log_level }),
];

const SERVER_OPTIONS = [
  new Option("--config <file>", "path to the project's langgraph.json").default("langgraph.json", "./langgraph.json"),
  ...Object.values(SETTINGS).flatMap(optionsOf),
];

function optionsOf(section: Readonly<Record<string, Setting<unknown>>>): Option[] {
  return Object.values(section).flatMap((setting) => {
    if (setting.flag === undefined) return [];
    const value = plainText(setting.shown_default ?? (setting.default || "none"));
    const env = setting.env ? `, env: ${setting.env.join(", ")}` : "";
    return [new Option(setting.flag, `${plainText(summaryOf(setting))} (default: ${value}${env})`)];
  });
}

export async function runCli(argv: string[]): Promise<void> {
  const program = new Command("threadmill")
    .description("Run AI agents on your own server.")
    .version(ownVersion(), "--version", "print the version")
    .exitOverride();
  const add = (
    name: Config["command"] | "migrate",
    description: string,
    options: Option[],
    run: (flags: Flags) => Promise<void>,
  ) => addOptions(program.command(name).description(description).exitOverride(), options).action(run);
  add("dev", "start a development server that reloads graphs when files change", SERVER_OPTIONS, (flags) =>
    serveAs("dev", flags),
  );
  add("serve", "start a production server", SERVER_OPTIONS, (flags) => serveAs("serve", flags));
  add("migrate", "apply pending database migrations and exit", STORAGE_OPTIONS, migrateOnly);
  addKeyCommands(program, STORAGE_OPTIONS);
  addExperimentCommands(program);
  addDeploymentCommands(program);
  try {
    await program.parseAsync(argv);
  } catch (error) {
    exitWith(error);
  }
}

const serveAs = async (command: Config["command"], flags: Flags): Promise<void> =>
  (await import("./serve.ts")).serve(command, flags);

function exitWith(error: unknown): never {
  const { exitCode, code, syscall, message } = error as NodeJS.ErrnoException & { exitCode?: number };
  // Commander has already printed its message.
  if (code?.startsWith("commander.")) process.exit(exitCode === 0 ? 0 : USAGE_STATUS);
  if (error instanceof ConfigError) {
    printError(message);
    process.exit(USAGE_STATUS);
  }
  if (syscall === "listen" && (code === "EADDRINUSE" || code === "EACCES" || code === "EADDRNOTAVAIL")) {
    printError(`Cannot listen on the address (${message}): choose another port or address with --port or --host.`);
    // The program that uses the port may end, so a supervisor should start this one again.
    process.exit(code === "EADDRINUSE" ? 1 : USAGE_STATUS);
  }
  console.error(error);
  process.exit(1);
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
    const database = await openDatabase(config, "full", log, part);
    try {
      const applied = await migrate(database, MIGRATIONS[part]);
      const { description } = database;
      console.log(
        applied.length > 0
          ? `Applied ${applied.join(", ")} to the database: ${description}`
          : `The database is up to date: ${description}`,
      );
    } finally {
      await database.close();
    }
  }
}

const DEPLOY_OPTIONS = [
  new Option("--name <name>", "deployment name (default: the name in package.json, or the folder name)"),
  new Option("--config <file>", "path to langgraph.json, relative to the project folder (default: langgraph.json)"),
  new Option("--deployment-type <type>", "deployment type, used if the command creates the deployment")
    .choices(["dev_free", "dev", "prod"])
    .default("dev"),
  new Option("--install-command <command>", "command that installs dependencies (default: derived from the lock file)"),
  new Option(
    "--build-command <command>",
    "command that builds the project (default: the build script in package.json)",
  ),
  ...WAIT_OPTIONS,
  JSON_OPTION,
];

const LISTEN_OPTIONS = [
  new Option(
    "--compute-id <id>",
    "name of the cluster; the listener is created if it does not exist",
  ).makeOptionMandatory(),
  new Option(
    "--namespaces <names...>",
    "namespaces that deployments may use (default: THREADMILL_KUBERNETES_NAMESPACE)",
  ),
  ...optionsOf({
    database_url: SETTINGS["The database"].database_url,
    data_dir: SETTINGS["The database"].data_dir,
    log_level: SETTINGS["The server"].log_level,
  }),
];

const LOG_OPTIONS = [
  new Option("-f, --follow", "print new lines until interrupted"),
  new Option("--type <type>", "log to print: the build log, or the log of the running deployment")
    .choices(["build", "deploy"])
    .default("deploy"),
  new Option("--revision <id>", "print only this revision's logs (default with --type build: the latest revision)"),
  new Option("--limit <n>", "number of recent lines to print").default(100).argParser(wholeNumber(1, 1000)),
  new Option("--level <level>", "minimum log level").choices(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
  new Option("--json", "print one JSON object per line"),
];

function addDeploymentCommands(program: Command): void {
  addServiceCommand(program, "deploy", "deploy a project and wait until it serves traffic", DEPLOY_OPTIONS)
    .argument("[folder]", "project folder", ".")
    .action(serviceAction(async () => (await import("./deployments/deploy.ts")).deploy));
  const listen = "deploy to a Kubernetes cluster for a service that cannot reach the cluster";
  addServiceCommand(program, "listen", listen, LISTEN_OPTIONS).action(
    serviceAction(async () => (await import("./listen.ts")).listen),
  );
  const deployments = program.command("deployments").description("manage deployments");
  addServiceCommand(deployments, "list", "list deployments", [JSON_OPTION]).action(
    serviceAction(async () => (await import("./deployments/deployments.ts")).listDeployments),
  );
  addServiceCommand(deployments, "logs", "print a deployment's logs", LOG_OPTIONS)
    .argument("<deployment>", "deployment name or ID")
    .action(serviceAction(async () => (await import("./deployments/logs.ts")).printLogs));
  const rollback = "redeploy an earlier revision without rebuilding it";
  addServiceCommand(deployments, "rollback", rollback, [...WAIT_OPTIONS, JSON_OPTION])
    .argument("<deployment>", "deployment name or ID")
    .argument("[revision]", "revision ID (default: the newest deployed revision that was created before the live one)")
    .action(serviceAction(async () => (await import("./deployments/deployments.ts")).rollBack));
  addServiceCommand(deployments, "delete", "delete a deployment and its threads", [JSON_OPTION])
    .argument("<deployment>", "deployment name or ID")
    .action(serviceAction(async () => (await import("./deployments/deployments.ts")).deleteDeployment));
}

const UPLOAD_OPTIONS = [
  new Option("--format <format>", "file format")
    .choices(["auto", "json", "jsonl", "csv", "lm-eval", "promptfoo"])
    .default("auto"),
  new Option("--name <experiment>", "experiment name (default: the name in the file, or the file name)"),
  new Option("--dataset <name>", "dataset name; the dataset is created if it does not exist"),
  new Option("--dataset-id <id>", "dataset ID, instead of --dataset"),
  new Option("--description <text>", "experiment description"),
  new Option("--metadata <json>", "experiment metadata, as a JSON object").argParser(jsonObject),
  new Option("--provider <id>", "for a promptfoo file: upload only the results of this provider (its ID or label)"),
  new Option(
    "--prompt <label>",
    "for a promptfoo file: upload only the results of this prompt (its label, or the beginning of its text)",
  ),
  new Option("--json", "print the service's response as JSON"),
];

const EXPORT_OPTIONS = [
  new Option("--format <format>", "output format (default: derived from the file extension, or json)").choices([
    "json",
    "jsonl",
    "csv",
  ]),
  new Option("--output <file>", "file to write (default: standard output)"),
];

const RUN_OPTIONS = [
  new Option("--dataset <name>", "dataset to run the assistant on").makeOptionMandatory(),
  new Option("--assistant <id>", "assistant to run: its ID, or a graph name").makeOptionMandatory(),
  new Option("--evaluators <file>", "module that exports one evaluator function per feedback key"),
  new Option("--name <experiment>", "experiment name (default: the value of --assistant and the current time)"),
  new Option("--concurrency <n>", "maximum number of concurrent runs").default(4).argParser(wholeNumber(1, 1000)),
  new Option("--repetitions <n>", "number of runs per example").default(1).argParser(wholeNumber(1, 1000)),
  new Option(
    "--journal <file>",
    "file that stores finished rows until the upload (default: named after the dataset and assistant)",
  ),
  JSON_OPTION,
];

function addExperimentCommands(program: Command): void {
  const experiments = program.command("experiments").description("run, upload and export experiments");
  const upload = "upload results from a file: JSON, JSONL, CSV, lm-evaluation-harness or promptfoo";
  addServiceCommand(experiments, "upload", upload, UPLOAD_OPTIONS)
    .argument("<file>", "file to upload")
    .action(serviceAction(async () => (await import("./experiments/upload.ts")).uploadExperiment));
  const run = "run an assistant on a dataset, evaluate the outputs and upload the results";
  addServiceCommand(experiments, "run", run, RUN_OPTIONS)
    .usage("--dataset <name> --assistant <id> [options]")
    .action(serviceAction(async () => (await import("./experiments/run.ts")).runExperiment));
  addServiceCommand(experiments, "export", "export an experiment to a file that can be uploaded again", EXPORT_OPTIONS)
    .argument("<experiment>", "experiment name or ID")
    .action(serviceAction(async () => (await import("./experiments/export.ts")).exportExperiment));
}

function jsonObject(text: string): JsonObject {
  const value = jsonOrUndefined(text);
  if (isObject(value)) return value;
  throw new InvalidArgumentError('It must be a JSON object, such as {"model": "m1"}.');
}

const CREATE_OPTIONS = [
  new Option("--name <name>", "key description").makeOptionMandatory().argParser(shortText),
  new Option("--user <user>", "owner of the key").makeOptionMandatory().argParser(shortText),
  new Option("--workspace <workspace>", "workspace name or ID; the workspace is created if it does not exist")
    .default("default")
    .argParser(shortText),
  new Option("--scope <scope...>", `allowed scopes (default: ${DEFAULT_SCOPES.join(", ")})`).choices(SCOPES),
];

const RETIRE_OPTION = new Option(
  "--retire",
  "retire encryption keys that are no longer in use, and remove them from the key file if there is one",
);

/** The commands open the database directly, so they work before the first start of the service and while it runs. */
function addKeyCommands(program: Command, storageOptions: readonly Option[]): void {
  const keys = program.command("keys").description("manage API keys and encryption keys");
  const add = (name: string, description: string, options: readonly Option[]) =>
    addOptions(keys.command(name).description(description), [...options, ...storageOptions]);
  add("create", "create an API key and print it; it cannot be printed again", [...CREATE_OPTIONS, JSON_OPTION]).action(
    async (flags: CreateFlags) => (await import("./keys.ts")).createKey(flags),
  );
  add("list", "list the API keys of all workspaces", [JSON_OPTION]).action(async (flags: Flags & { json?: boolean }) =>
    (await import("./keys.ts")).listKeys(flags),
  );
  add("revoke", "revoke an API key permanently", [])
    .argument("<id>", "key ID")
    .action(async (id: string, flags: Flags) => (await import("./keys.ts")).revokeKey(id, flags));
  add("rotate-encryption", "re-encrypt all secrets with a new key; services can keep running", [RETIRE_OPTION]).action(
    async (flags: RotateFlags) => (await import("./keys.ts")).rotateEncryption(flags),
  );
}

function shortText(text: string): string {
  if (text.trim() !== "" && text.length <= 256) return text;
  throw new InvalidArgumentError("It must be 1 to 256 characters long and must not be blank.");
}
