import { type Command, InvalidArgumentError, Option } from "commander";
import type { Flags } from "../../config/config.ts";
import { DEFAULT_SCOPES, SCOPES } from "../../platform/contract/caller.ts";
import { addOptions, JSON_OPTION } from "../command.ts";
import type { CreateFlags } from "./api-keys.ts";
import type { RotateFlags } from "./rotate-encryption.ts";

const CREATE_OPTIONS = [
  new Option("--name <name>", "key description").makeOptionMandatory().argParser(shortText),
  new Option("--user <user>", "owner of the key").makeOptionMandatory().argParser(shortText),
  new Option("--workspace <workspace>", "workspace name or ID; the workspace is created if it does not exist")
    .default("default")
    .argParser(shortText),
  new Option("--scope <scope...>", `allowed scopes (default: ${DEFAULT_SCOPES.join(", ")})`).choices(SCOPES),
];

const RETIRE_OPTION = new Option("--retire", "remove encryption keys that are no longer in use");

/** The commands open the database directly, so they work before the first start of the service and while it runs. */
export function addKeyCommands(program: Command, storageOptions: readonly Option[]): void {
  const keys = program.command("keys").description("manage API keys and encryption keys");
  const add = (name: string, description: string, options: readonly Option[]) =>
    addOptions(keys.command(name).description(description), [...options, ...storageOptions]);
  add("create", "create an API key and print it; it cannot be printed again", [...CREATE_OPTIONS, JSON_OPTION]).action(
    async (flags: CreateFlags) => (await import("./api-keys.ts")).createKey(flags),
  );
  add("list", "list the API keys of all workspaces", [JSON_OPTION]).action(async (flags: Flags & { json?: boolean }) =>
    (await import("./api-keys.ts")).listKeys(flags),
  );
  add("revoke", "revoke an API key permanently", [])
    .argument("<id>", "key ID")
    .action(async (id: string, flags: Flags) => (await import("./api-keys.ts")).revokeKey(id, flags));
  add("rotate-encryption", "re-encrypt all secrets with a new key; services can keep running", [RETIRE_OPTION]).action(
    async (flags: RotateFlags) => (await import("./rotate-encryption.ts")).rotateEncryption(flags),
  );
}

function shortText(text: string): string {
  if (text.trim() !== "" && text.length <= 256) return text;
  throw new InvalidArgumentError("It must be 1 to 256 characters long.");
}
