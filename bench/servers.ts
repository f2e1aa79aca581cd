import { once } from "node:events";
import { get } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import type { ServerProcess } from "./http-target.ts";
import { sleep } from "./load.ts";
import { processUsage } from "./process-usage.ts";
import { type Started, start, stop } from "./processes.ts";

const START_TIMEOUT_MS = 60_000;
/** Also the maximum error of the measured start time. */
const POLL_MS = 5;

/**
 * Starts a server and waits until it answers 200.
 *
 * @param command the arguments
 * @param options `program`: default Node.js; `ready_path`: default `/ok`
 */
export async function startServer(
  command: (port: number) => string[],
  cwd: string,
  env: Record<string, string> = {},
  options: { program?: string; ready_path?: string } = {},
): Promise<ServerProcess> {
  const { program, ready_path = "/ok" } = options;
  const port = await freePort();
  const spawned_at = performance.now();
  const started = start(command(port), { cwd, env, ...(program !== undefined && { command: program }) });
  try {
    const ready_ms = (await waitUntilReady({ port, path: ready_path }, started, spawned_at)) - spawned_at;
    const pid = started.child.pid as number;
    return {
      port,
      spawned_at,
      ready_ms,
      usage: () => processUsage(pid),
      stop: () => stop(started),
      startAgain: () => startServer(command, cwd, env, options),
    };
  } catch (error) {
    await stop(started);
    throw error;
  }
}

async function waitUntilReady(
  at: { port: number; path: string },
  { child, stderrTail }: Started,
  spawned_at: number,
): Promise<number> {
  for (;;) {
    if (await answersOk(at)) return performance.now();
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`The server exited during its start: ${stderrTail()}`);
    if (performance.now() - spawned_at > START_TIMEOUT_MS)
      throw new Error(`The server did not answer within ${START_TIMEOUT_MS / 1000} s: ${stderrTail()}`);
    await sleep(POLL_MS);
  }
}

function answersOk({ port, path }: { port: number; path: string }): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path, agent: false, timeout: 5_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
