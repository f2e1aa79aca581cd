import { type Command, Option } from "commander";
import { addTargetOptions, type TargetFlags, targetOf, told, wholeNumber } from "../target.ts";
import type { DeployFlags } from "./deploy.ts";

const OPTIONS = [
  new Option("--name <name>", "of the deployment (default: that of package.json, or of the folder)"),
  new Option("--config <file>", "langgraph.json, relative to the folder (default: langgraph.json)"),
  new Option("--deployment-type <type>", "of a new deployment").choices(["dev_free", "dev", "prod"]).default("dev"),
  new Option("--install-command <command>", "instead of what the lock file suggests, at the root"),
  new Option("--build-command <command>", "instead of the script build, beside langgraph.json"),
  new Option("--no-wait", "do not wait until it serves"),
  new Option("--timeout <seconds>", "wait no longer than that").default(900).argParser(wholeNumber(1, 86_400)),
  new Option("--json", "print JSON"),
];

/** Adds `deploy`. What it does is loaded when it is needed: servers never do. */
export function addDeployCommand(program: Command): void {
  const command = program
    .command("deploy")
    .description("deploy the project in a folder: pack it, upload it, and wait until it serves")
    .argument("[folder]", "of the project", ".");
  for (const option of OPTIONS) command.addOption(option);
  addTargetOptions(command).action((folder: string, flags: DeployFlags & TargetFlags) =>
    told(async () => (await import("./deploy.ts")).deploy(folder, flags, targetOf(flags))),
  );
}
