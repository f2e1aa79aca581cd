import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Command } from "./command.ts";

const run = promisify(execFile);

/** What a short command of ours prints, without the space around it. */
export async function outputOf({ file, args, cwd, env, timeout_ms, user }: Command): Promise<string> {
  const { stdout } = await run(file, [...args], { cwd, env: { ...env }, timeout: timeout_ms, ...user });
  return stdout.trim();
}
