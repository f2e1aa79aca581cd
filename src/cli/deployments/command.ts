import { type Command, Option } from "commander";
import {
  addOptions,
  addTargetOptions,
  JSON_OPTION,
  runCommand,
  type TargetFlags,
  targetOf,
  WAIT_OPTIONS,
  wholeNumber,
} from "../command.ts";
import type { DeployFlags } from "./deploy.ts";
import type { RollbackFlags } from "./deployments.ts";
import type { LogFlags } from "./logs.ts";

const DEPLOY_OPTIONS = [
  new Option("--name <name>", "name of the deployment (default: the name in package.json, or of the folder)"),
  new Option("--config <file>", "path of langgraph.json, relative to the folder (default: langgraph.json)"),
  new Option("--deployment-type <type>", "type of a new deployment")
    .choices(["dev_free", "dev", "prod"])
    .default("dev"),
  new Option("--install-command <command>", "install dependencies with this command (default: by the lock file)"),
  new Option("--build-command <command>", "build with this command (default: the build script of package.json)"),
  ...WAIT_OPTIONS,
  JSON_OPTION,
];

const LOG_OPTIONS = [
  new Option("-f, --follow", "print new lines until interrupted"),
  new Option("--type <type>", "logs of the build, or of the running deployment")
    .choices(["build", "deploy"])
    .default("deploy"),
  new Option("--revision <id>", "only logs of this revision (default with --type build: the latest)"),
  new Option("--limit <n>", "number of recent lines to print").default(100).argParser(wholeNumber(1, 1000)),
  new Option("--level <level>", "minimum log level").choices(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
  new Option("--json", "print one JSON object per line"),
];

/**
 * Adds `deploy` and `deployments list`, `logs`, `rollback`, `delete`. Each command loads its code when it runs, so that servers do
 * not load it.
 */
export function addDeploymentCommands(program: Command): void {
  const deploy = program.command("deploy").description("deploy a project and wait until it serves traffic");
  addTargetOptions(addOptions(deploy.argument("[folder]", "folder of the project", "."), DEPLOY_OPTIONS)).action(
    (folder: string, flags: DeployFlags & TargetFlags) =>
      runCommand(async () => (await import("./deploy.ts")).deploy(folder, flags, targetOf(flags))),
  );
  const deployments = program.command("deployments").description("manage deployments");
  const add = (name: string, description: string, options: Option[]) =>
    addTargetOptions(addOptions(deployments.command(name).description(description), options));
  add("list", "list deployments", [JSON_OPTION]).action((flags: { json?: boolean } & TargetFlags) =>
    runCommand(async () => (await import("./deployments.ts")).listDeployments(flags, targetOf(flags))),
  );
  add("logs", "print the logs of a deployment", LOG_OPTIONS)
    .argument("<deployment>", "name or ID of the deployment")
    .action((name: string, flags: LogFlags & TargetFlags) =>
      runCommand(async () => (await import("./logs.ts")).printLogs(name, flags, targetOf(flags))),
    );
  add("rollback", "redeploy an earlier revision without building it again", [...WAIT_OPTIONS, JSON_OPTION])
    .argument("<deployment>", "name or ID of the deployment")
    .argument("[revision]", "ID of the revision (default: the revision deployed before the current one)")
    .action((name: string, revision: string | undefined, flags: RollbackFlags & TargetFlags) =>
      runCommand(async () => (await import("./deployments.ts")).rollBack(name, revision, flags, targetOf(flags))),
    );
  add("delete", "delete a deployment and its threads", [JSON_OPTION])
    .argument("<deployment>", "name or ID of the deployment")
    .action((name: string, flags: { json?: boolean } & TargetFlags) =>
      runCommand(async () => (await import("./deployments.ts")).deleteDeployment(name, flags, targetOf(flags))),
    );
}
