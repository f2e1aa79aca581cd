import { once } from "node:events";
import { get } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import type { ServerProcess } from "./http-target.ts";
import { sleep } from "./load.ts";
import { processUsage } from "./process-usage.ts";
import { type Started, start, stop } from "./processes.ts";

/** A server that has not answered after this long will not. */
const START_LIMIT_MS = 60_000;
/** Between two looks whether it answers: the error of the start-up time. */
const LOOK_EVERY_MS = 5;

/** Starts a server and waits until GET /ok answers 200. */
export async function startServer(
  command: (port: number) => string[],
  cwd: string,
  env: Record<string, string> = {},
): Promise<ServerProcess> {
  const port = await freePort();
  const spawned_at = performance.now();
  const started = start(command(port), { cwd, env });
  try {
    const ready_ms = (await untilReady(port, started, spawned_at)) - spawned_at;
    const pid = started.child.pid as number;
    return {
      port,
      spawned_at,
      ready_ms,
      usage: () => processUsage(pid),
      stop: () => stop(started),
      startAgain: () => startServer(command, cwd, env),
    };
  } catch (error) {
    await stop(started);
    throw error;
  }
}

async function untilReady(port: number, { child, complaints }: Started, spawned_at: number): Promise<number> {
  for (;;) {
    if (await answersOk(port)) return performance.now();
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`The server ended at its start: ${complaints()}`);
    if (performance.now() - spawned_at > START_LIMIT_MS)
      throw new Error(`The server did not answer within ${START_LIMIT_MS / 1000} s: ${complaints()}`);
    await sleep(LOOK_EVERY_MS);
  }
}

function answersOk(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = get({ host: "127.0.0.1", port, path: "/ok", agent: false, timeout: 5_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.on("timeout", () => asked.destroy());
    asked.on("error", () => resolve(false));
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
