import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { HttpApi } from "./http-api.ts";
import { processUsage } from "./process-usage.ts";
import { start, stop, temporaryFolder } from "./processes.ts";
import type { RouterOrder, RouterStarted } from "./router-process.ts";
import type { Usage } from "./target.ts";

/** A router in a process of its own. */
export interface BenchRouter extends AsyncDisposable {
  /** Asks the deployment, with a key. */
  ask: HttpApi["ask"];
  /** Sends its requests to the server on this port from now on. */
  lead(port: number): Promise<void>;
  usage(): Usage | undefined;
}

export async function startRouter(): Promise<BenchRouter> {
  const order: RouterOrder = { data: temporaryFolder() };
  const started = start([join(import.meta.dirname, "router-process.ts"), JSON.stringify(order)], { output: true });
  const { child, complaints } = started;
  if (!child.stdout) throw new Error("The router's process has no output.");
  const line = await Promise.race([
    once(createInterface(child.stdout), "line").then(([text]) => text as string),
    once(child, "close").then(() => undefined),
  ]);
  if (line === undefined) throw new Error(`The router's process ended: ${complaints()}`);
  const { port, path, key, switch_port } = JSON.parse(line) as RouterStarted;
  const [api, switcher] = [new HttpApi(port, { "x-api-key": key }), new HttpApi(switch_port)];
  return {
    ask: (method, below, asked) => api.ask(method, path + below, asked),
    async lead(to) {
      await switcher.ask("POST", "/", { body: Buffer.from(`http://127.0.0.1:${to}`) });
    },
    usage: () => processUsage(child.pid as number),
    async [Symbol.asyncDispose]() {
      for (const each of [api, switcher]) each.close();
      await stop(started);
    },
  };
}
