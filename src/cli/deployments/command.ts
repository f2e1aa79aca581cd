import { type Command, Option } from "commander";
import { addServiceCommand, JSON_OPTION, serviceAction, WAIT_OPTIONS, wholeNumber } from "../command.ts";

const DEPLOY_OPTIONS = [
  new Option("--name <name>", "deployment name (default: the name in package.json, or the folder name)"),
  new Option("--config <file>", "path to langgraph.json, relative to the project folder (default: langgraph.json)"),
  new Option("--deployment-type <type>", "deployment type, if the deployment does not exist yet")
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

export function addDeploymentCommands(program: Command): void {
  addServiceCommand(program, "deploy", "deploy a project and wait until it serves traffic", DEPLOY_OPTIONS)
    .argument("[folder]", "project folder", ".")
    .action(serviceAction(async () => (await import("./deploy.ts")).deploy));
  const deployments = program.command("deployments").description("manage deployments");
  addServiceCommand(deployments, "list", "list deployments", [JSON_OPTION]).action(
    serviceAction(async () => (await import("./deployments.ts")).listDeployments),
  );
  addServiceCommand(deployments, "logs", "print a deployment's logs", LOG_OPTIONS)
    .argument("<deployment>", "deployment name or ID")
    .action(serviceAction(async () => (await import("./logs.ts")).printLogs));
  const rollback = "redeploy an earlier revision without rebuilding it";
  addServiceCommand(deployments, "rollback", rollback, [...WAIT_OPTIONS, JSON_OPTION])
    .argument("<deployment>", "deployment name or ID")
    .argument("[revision]", "revision ID (default: the revision deployed before the current one)")
    .action(serviceAction(async () => (await import("./deployments.ts")).rollBack));
  addServiceCommand(deployments, "delete", "delete a deployment and its threads", [JSON_OPTION])
    .argument("<deployment>", "deployment name or ID")
    .action(serviceAction(async () => (await import("./deployments.ts")).deleteDeployment));
}
