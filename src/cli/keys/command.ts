import type { Command } from "commander";
import { addRotateEncryption } from "./rotate-encryption.ts";

/** Adds `keys` with its commands. */
export function addKeyCommands(program: Command): void {
  const keys = program.command("keys").description("the encryption keys of what is secret in the database");
  addRotateEncryption(keys);
}
