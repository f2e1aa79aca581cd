import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import type { TestDatabase } from "./databases.ts";

const ROOT = join(import.meta.dirname, "../..");

export interface ServerProcess {
  url: string;
  child: ChildProcess;
  /** Resolves when the process has ended, whatever ended it. */
  ended: Promise<unknown>;
}

export interface ServerOptions {
  database: TestDatabase;
  /** Path from the repository's root. */
  config: string;
  port: number;
  command?: "dev" | "serve";
  env?: Record<string, string>;
  /** A module that is loaded before the server. */
  preload?: string;
}

/** Starts the real program as a process of its own. Resolves when it answers; rejects when it ends before that. */
export async function startProcess(options: ServerOptions): Promise<ServerProcess> {
  const { database, port, command = "serve" } = options;
  const preload = options.preload ? ["--import", join(ROOT, options.preload)] : [];
  const args = [...preload, join(ROOT, "bin/threadmill.js"), command, "--config", join(ROOT, options.config)];
  args.push("--port", String(port), "--data", database.data_dir, "--log-level", "error");
  if (database.url) args.push("--database-url", database.url);
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit");
  let output = "";
  child.stderr?.on("data", (chunk) => {
    output += chunk;
  });
  const up = new Promise<void>((resolve) => {
    child.stdout?.on("data", (chunk) => {
      if (String(chunk).includes(" is up ")) resolve();
    });
  });
  const state = await Promise.race([up.then(() => "up"), ended.then(() => "ended")]);
  if (state === "ended") throw new EndedEarly(output);
  return { url: `http://127.0.0.1:${port}`, child, ended };
}

/** The process ended before it was up. */
export class EndedEarly extends Error {}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
