import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Server } from "../target.ts";

/** A run whose node waits for its abort signal, with a stream reader. */
export interface WaitingRun {
  /** `/threads/{thread_id}/runs/{run_id}` */
  path: string;
  /** Resolves at the end of the stream. */
  ended: Promise<unknown>;
}

/** Starts a run that executes `steps` and then waits to be stopped. Resolves when it waits. */
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
  if (!run_id) throw new Error("The response has no Content-Location with the run ID.");
  const ended = once(stream, "end");
  // A caller may ignore `ended`; the measurement then fails at its next request.
  ended.catch(() => undefined);
  await waitUntilWaiting(stream);
  return { path: `/threads/${thread_id}/runs/${run_id}`, ended };
}

/** The node writes one custom event before it waits. */
async function waitUntilWaiting(stream: IncomingMessage): Promise<void> {
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

/** Cancels a run with wait=1. @returns the latency, in ms */
export async function stopWaiting(server: Server, { path }: WaitingRun, action: string): Promise<number> {
  const sent_at = performance.now();
  await server.send("POST", `${path}/cancel?action=${action}&wait=1`, { status: 204 });
  return performance.now() - sent_at;
}
