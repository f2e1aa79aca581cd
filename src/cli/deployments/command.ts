import { type Command, Option } from "commander";
import { addTargetOptions, type TargetFlags, targetOf, told, wholeNumber } from "../target.ts";
import type { LogFlags } from "./logs.ts";
import type { RollbackFlags } from "./rollback.ts";

const JSON_OPTION = new Option("--json", "print JSON");

const LOG_OPTIONS = [
  new Option("-f, --follow", "go on with what is written from now on"),
  new Option("--type <type>", "of the build, or of what runs").choices(["build", "deploy"]).default("deploy"),
  new Option("--revision <id>", "of this revision alone (default for --type build: the latest)"),
  new Option("--limit <n>", "how many of the last lines").default(100).argParser(wholeNumber(1, 1000)),
  new Option("--level <level>", "at least that important").choices(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
  new Option("--json", "print a JSON object a line"),
];

const ROLLBACK_OPTIONS = [
  new Option("--no-wait", "do not wait until it serves"),
  new Option("--timeout <seconds>", "wait no longer than that").default(900).argParser(wholeNumber(1, 86_400)),
  JSON_OPTION,
];

/** Adds `deployments list`, `logs`, `rollback` and `delete`. What they do is loaded when it is needed: servers never do. */
export function addDeploymentCommands(program: Command): void {
  const deployments = program
    .command("deployments")
    .description("look at deployments, and change which revision serves");
  const add = (name: string, description: string, options: Option[]) => {
    const command = deployments.command(name).description(description);
    for (const option of options) command.addOption(option);
    return addTargetOptions(command);
  };
  add("list", "what is deployed, and where it is reached", [JSON_OPTION]).action(
    (flags: { json?: boolean } & TargetFlags) =>
      told(async () => (await import("./list.ts")).listDeployments(flags, targetOf(flags))),
  );
  add("logs", "what a deployment has written", LOG_OPTIONS)
    .argument("<deployment>", "its name or id")
    .action((name: string, flags: LogFlags & TargetFlags) =>
      told(async () => (await import("./logs.ts")).showLogs(name, flags, targetOf(flags))),
    );
  add("rollback", "deploy an earlier revision again, as it was built", ROLLBACK_OPTIONS)
    .argument("<deployment>", "its name or id")
    .argument("[revision]", "which one (default: the last that served before the one that serves)")
    .action((name: string, revision: string | undefined, flags: RollbackFlags & TargetFlags) =>
      told(async () => (await import("./rollback.ts")).rollBack(name, revision, flags, targetOf(flags))),
    );
  add("delete", "delete a deployment, with its threads", [JSON_OPTION])
    .argument("<deployment>", "its name or id")
    .action((name: string, flags: { json?: boolean } & TargetFlags) =>
      told(async () => (await import("./delete.ts")).deleteDeployment(name, flags, targetOf(flags))),
    );
}
