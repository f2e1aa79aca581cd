import { type Command, Option } from "commander";
import { addServiceCommand, JSON_OPTION, serviceAction, WAIT_OPTIONS, wholeNumber } from "../command.ts";

const DEPLOY_OPTIONS = [
  new Option("--name <name>", "name of the deployment (default: the name in package.json, or the folder's name)"),
  new Option("--config <file>", "path of langgraph.json, relative to the folder (default: langgraph.json)"),
  new Option("--deployment-type <type>", "type of a new deployment")
    .choices(["dev_free", "dev", "prod"])
    .default("dev"),
  new Option(
    "--install-command <command>",
    "install dependencies with this command (default: derived from the lock file)",
  ),
  new Option("--build-command <command>", "build with this command (default: the build script of package.json)"),
  ...WAIT_OPTIONS,
  JSON_OPTION,
];

const LOG_OPTIONS = [
  new Option("-f, --follow", "print new lines until interrupted"),
  new Option("--type <type>", "print the build log or the running deployment's log")
    .choices(["build", "deploy"])
    .default("deploy"),
  new Option("--revision <id>", "print only this revision's logs (default with --type build: the latest revision)"),
  new Option("--limit <n>", "number of recent lines to print").default(100).argParser(wholeNumber(1, 1000)),
  new Option("--level <level>", "minimum log level").choices(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
  new Option("--json", "print one JSON object per line"),
];

export function addDeploymentCommands(program: Command): void {
  addServiceCommand(program, "deploy", "deploy a project and wait until it serves traffic", DEPLOY_OPTIONS)
    .argument("[folder]", "folder of the project", ".")
    .action(serviceAction(async () => (await import("./deploy.ts")).deploy));
  const deployments = program.command("deployments").description("manage deployments");
  addServiceCommand(deployments, "list", "list deployments", [JSON_OPTION]).action(
    serviceAction(async () => (await import("./deployments.ts")).listDeployments),
  );
  addServiceCommand(deployments, "logs", "print the logs of a deployment", LOG_OPTIONS)
    .argument("<deployment>", "name or ID of the deployment")
    .action(serviceAction(async () => (await import("./logs.ts")).printLogs));
  const rollback = "redeploy an earlier revision without building it again";
  addServiceCommand(deployments, "rollback", rollback, [...WAIT_OPTIONS, JSON_OPTION])
    .argument("<deployment>", "name or ID of the deployment")
    .argument("[revision]", "ID of the revision (default: the revision that was deployed before the current revision)")
    .action(serviceAction(async () => (await import("./deployments.ts")).rollBack));
  addServiceCommand(deployments, "delete", "delete a deployment and its threads", [JSON_OPTION])
    .argument("<deployment>", "name or ID of the deployment")
    .action(serviceAction(async () => (await import("./deployments.ts")).deleteDeployment));
}
