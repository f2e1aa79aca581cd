import { type Command, InvalidArgumentError, Option } from "commander";
import type { Flags } from "../../config/config.ts";
import { SCOPES } from "../../platform/contract/caller.ts";
import type { CreateFlags } from "./create.ts";
import type { RotateFlags } from "./rotate-encryption.ts";

const JSON_OUTPUT = new Option("--json", "print JSON");

const RETIRE = new Option("--retire", "then remove the keys that nothing is sealed with any more");

const CREATE_OPTIONS = [
  new Option("--name <name>", "what the key is for").makeOptionMandatory().argParser(shortText),
  new Option("--user <user>", "whose it is").makeOptionMandatory().argParser(shortText),
  new Option("--workspace <workspace>", "name or id of its workspace; made when there is none")
    .default("default")
    .argParser(shortText),
  new Option("--scope <scope...>", "what it is good for (default: agents, experiments, deployments, tokens)").choices(
    SCOPES,
  ),
];

/**
 * Adds `keys create`, `keys list` and `keys revoke`. They open the database themselves, so they work before the first start
 * of the service, and beside a running one.
 */
export function addKeyCommands(program: Command, storageOptions: readonly Option[]): void {
  const keys = program
    .command("keys")
    .description("API keys, and the encryption keys of what is secret in the database");
  const add = (name: string, description: string, options: readonly Option[]) => {
    const command = keys.command(name).description(description);
    for (const option of [...options, ...storageOptions]) command.addOption(option);
    return command;
  };
  add("create", "make a key, and print it this once", [...CREATE_OPTIONS, JSON_OUTPUT]).action(
    async (flags: CreateFlags) => (await import("./create.ts")).createKey(flags),
  );
  add("list", "list the keys of all workspaces", [JSON_OUTPUT]).action(async (flags: Flags & { json?: boolean }) =>
    (await import("./list.ts")).listKeys(flags),
  );
  add("revoke", "end a key for good", [])
    .argument("<id>", "the id of the key")
    .action(async (id: string, flags: Flags) => (await import("./revoke.ts")).revokeKey(id, flags));
  add("rotate-encryption", "seal all secrets with a new encryption key, also while services run", [RETIRE]).action(
    async (flags: RotateFlags) => (await import("./rotate-encryption.ts")).rotateEncryption(flags),
  );
}

function shortText(text: string): string {
  if (text.trim() !== "" && text.length <= 256) return text;
  throw new InvalidArgumentError("It must have 1 to 256 characters.");
}
