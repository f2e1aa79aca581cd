import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { encryptionEnv } from "./encryption.ts";
import { PROGRAM, SOURCE_PROGRAM } from "./program.ts";

const ROOT = join(import.meta.dirname, "../..");

export interface ServerProcess {
  url: string;
  child: ChildProcess;
  /** Resolves when the process has ended, whatever ended it. */
  ended: Promise<unknown>;
  /** Resolves when the text has been printed on standard output. */
  printed(text: string): Promise<void>;
  /** All that was printed so far, on both outputs. */
  output(): string;
}

export interface ServerOptions {
  /** Absolute path, or from the repository's root. */
  config: string;
  data: string;
  databaseUrl?: string;
  port: number;
  command?: "dev" | "serve";
  env?: Record<string, string>;
  /** More flags of the command. */
  flags?: string[];
  /** A module that is loaded before the server. */
  preload?: string;
  /** The program of another version. */
  program?: string | undefined;
}

/** Starts the real program as a process of its own. Resolves when it answers; rejects when it ends before that. */
export async function startProcess(options: ServerOptions): Promise<ServerProcess> {
  const { data, databaseUrl, port, command = "serve", config, env, preload, program, flags = [] } = options;
  const args = [
    command,
    "--config",
    resolve(ROOT, config),
    "--port",
    String(port),
    "--data",
    data,
    "--log-level",
    "error",
    ...flags,
  ];
  if (databaseUrl) args.push("--database-url", databaseUrl);
  const child = startCli(args, { env: { ...encryptionEnv(databaseUrl), ...env }, preload, program });
  const ended = once(child, "exit");
  let output = "";
  let errors = "";
  child.stdout?.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    errors += chunk;
  });
  const printed = (text: string) =>
    new Promise<void>((found) => {
      const look = () => output.includes(text) && found();
      child.stdout?.on("data", look);
      look();
    });
  const state = await Promise.race([printed(" is up ").then(() => "up"), ended.then(() => "ended")]);
  if (state === "ended") throw new EndedEarly(errors);
  return { url: `http://127.0.0.1:${port}`, child, ended, printed, output: () => output + errors };
}

export function startCli(
  args: string[],
  { env, preload, program = PROGRAM }: { env?: Record<string, string>; preload?: string; program?: string | undefined },
): ChildProcess {
  const imports = preload ? ["--import", join(ROOT, preload)] : [];
  // Modules that are loaded before the server change its source.
  const command = [...imports, preload ? SOURCE_PROGRAM : program, ...args];
  return spawn(process.execPath, command, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
}

/** Runs the program to its end. */
export async function runCli(
  args: string[],
  env: Record<string, string> = {},
  preload?: string,
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = startCli(args, { env, preload });
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    stderr += chunk;
  });
  const [status] = await once(child, "close");
  return { status, stdout, stderr };
}

/** The process ended before it was up. */
export class EndedEarly extends Error {}

/** Below the ports that Linux gives to outgoing connections: a server that is killed must find its port free again. */
const FIRST_PORT = 12_000;
/** Each process of the tests takes its own ports one after the other: servers that start at the same time never get the same one. */
const BLOCK = 1_000;
const block = FIRST_PORT + BLOCK * (Number(process.env.VITEST_POOL_ID ?? 0) % 20);
let taken = randomInt(BLOCK);

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = block + (taken++ % BLOCK);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
