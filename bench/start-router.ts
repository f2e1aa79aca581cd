import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { HttpApi } from "./http-api.ts";
import { processUsage } from "./process-usage.ts";
import { start, stop, temporaryFolder } from "./processes.ts";
import type { RouterOptions, RouterStarted } from "./router-process.ts";
import type { Usage } from "./target.ts";

/** A router in a separate process. */
export interface BenchRouter extends AsyncDisposable {
  /** Sends a request with a key to the deployment. */
  send: HttpApi["send"];
  /** Switches the deployment to the server on this port. */
  switchTo(port: number): Promise<void>;
  usage(): Usage | undefined;
}

export async function startRouter(): Promise<BenchRouter> {
  const options: RouterOptions = { data: temporaryFolder() };
  const started = start([join(import.meta.dirname, "router-process.ts"), JSON.stringify(options)], { output: true });
  const { child, stderrTail } = started;
  if (!child.stdout) throw new Error("The router process has no output.");
  const line = await Promise.race([
    once(createInterface(child.stdout), "line").then(([text]) => text as string),
    once(child, "close").then(() => undefined),
  ]);
  if (line === undefined) throw new Error(`The router process exited: ${stderrTail()}`);
  const { port, path, key, switch_port } = JSON.parse(line) as RouterStarted;
  const [api, switcher] = [new HttpApi(port, { "x-api-key": key }), new HttpApi(switch_port)];
  return {
    send: (method, below, options) => api.send(method, path + below, options),
    async switchTo(to) {
      await switcher.send("POST", "/", { body: Buffer.from(`http://127.0.0.1:${to}`) });
    },
    usage: () => processUsage(child.pid as number),
    async [Symbol.asyncDispose]() {
      for (const each of [api, switcher]) each.close();
      await stop(started);
    },
  };
}
