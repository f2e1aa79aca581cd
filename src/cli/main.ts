import { Command, Option } from "commander";
import { type Config, type Flags, readStorageConfig } from "../config/config.ts";
import { type Setting, summaryOf } from "../config/settings/setting.ts";
import { SETTINGS } from "../config/settings/settings.ts";
import { ConfigError } from "../platform/errors.ts";
import { createLog } from "../platform/lib/log.ts";
import { addOptions, printError } from "./command.ts";
import { addDeploymentCommands } from "./deployments/command.ts";
import { addExperimentCommands } from "./experiments/command.ts";
import { addKeyCommands } from "./keys/command.ts";
import { serve } from "./serve.ts";

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
  const program = new Command("threadmill").description("Run AI agents on your own server.").exitOverride();
  const add = (
    name: Config["command"] | "migrate",
    description: string,
    options: Option[],
    run: (flags: Flags) => Promise<void>,
  ) => addOptions(program.command(name).description(description).exitOverride(), options).action(run);
  add("dev", "start a development server that reloads graphs when files change", SERVER_OPTIONS, (flags) =>
    serve("dev", flags),
  );
  add("serve", "start a production server", SERVER_OPTIONS, (flags) => serve("serve", flags));
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

function exitWith(error: unknown): never {
  const { exitCode, code, message } = error as { exitCode?: number; code?: string; message: string };
  // Commander has already printed its message.
  if (code?.startsWith("commander.")) process.exit(exitCode === 0 ? 0 : USAGE_STATUS);
  if (error instanceof ConfigError) {
    printError(message);
    process.exit(USAGE_STATUS);
  }
  if (code === "EADDRINUSE" || code === "EACCES" || code === "EADDRNOTAVAIL") {
    printError(`Cannot listen on the address (${message}): choose another port or address with --port or --host.`);
    process.exit(USAGE_STATUS);
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
