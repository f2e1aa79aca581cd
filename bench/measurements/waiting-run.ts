import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Server } from "../target.ts";

/** A run whose node waits for its signal, and the stream that watches it. */
export interface WaitingRun {
  /** `/threads/{thread_id}/runs/{run_id}` */
  path: string;
  /** Resolves when its stream has ended. */
  ended: Promise<unknown>;
}

/** Starts a run that takes some steps and then waits to be stopped; resolves once it waits. */
export async function startWaiting(server: Server, thread_id: string, steps: number): Promise<WaitingRun> {
  const body = {
    assistant_id: "steps",
    input: { count: 0, until: steps, wait: true },
    config: { recursion_limit: steps + 10 },
    stream_mode: ["custom"],
    if_not_exists: "create",
  };
  const stream = await server.open("POST", `/threads/${thread_id}/runs/stream`, { body });
  const run_id = stream.headers["content-location"]?.split("/").at(-1);
  if (!run_id) throw new Error("A new run's stream does not say which run it is.");
  const ended = once(stream, "end");
  // Who does not wait for it learns of the failure elsewhere.
  ended.catch(() => undefined);
  await untilWaiting(stream);
  return { path: `/threads/${thread_id}/runs/${run_id}`, ended };
}

/** The node writes one custom event before it waits. */
async function untilWaiting(stream: IncomingMessage): Promise<void> {
  stream.setEncoding("utf8");
  await new Promise<void>((resolve, reject) => {
    let text = "";
    stream.on("data", (chunk: string) => {
      text += chunk;
      if (text.includes('data: "waiting"')) resolve();
    });
    stream.on("error", reject);
    stream.on("end", () => reject(new Error(`A run ended instead of waiting: ${text}`)));
  });
}

/** Stops a run and waits until it has stopped. @returns how long that took, in ms */
export async function stopWaiting(server: Server, { path }: WaitingRun, action: string): Promise<number> {
  const sent_at = performance.now();
  await server.ask("POST", `${path}/cancel?action=${action}&wait=1`, { status: 204 });
  return performance.now() - sent_at;
}
