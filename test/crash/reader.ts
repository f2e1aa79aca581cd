import { setTimeout as pause } from "node:timers/promises";
import { parseSse } from "../support/sse.ts";

/** A run on a thread, at a server that comes and goes. */
export interface Watched {
  /** URL of the run. */
  url: string;
  run_id: string;
}

/** What is wrong with what a reader was told. */
export type Complaint = string;

/** What was told under each id, whoever was told first: all readers of a run must be told the same. */
export type Received = Map<number, string>;

export interface RunReading {
  complaints: Complaint[];
  /** The ID of the last event. */
  last: number;
}

/**
 * Reads a run to its end, through as many servers as it takes: when the connection breaks it comes back with the last id it
 * has seen. Ids must come as 1, 2, 3 ... over all connections.
 *
 * @param isCut asked after each event: true closes the connection
 */
export async function readThrough(
  run: Watched,
  received: Received,
  onEvent: () => void,
  isCut: () => boolean = () => false,
): Promise<RunReading> {
  const complaints: Complaint[] = [];
  let last = 0;
  const take = (text: string) => {
    for (const { id, event, data } of parseSse(text)) {
      const n = Number(id);
      if (n !== last + 1) complaints.push(`after ${last} came ${id} (${event})`);
      const content = JSON.stringify([event, data]);
      if ((received.get(n) ?? content) !== content) complaints.push(`${n} was ${received.get(n)} and is ${content}`);
      received.set(n, content);
      last = n;
      onEvent();
      if (isCut()) throw new Error("The reader closes the connection.");
    }
  };
  while (!(await readOnce(run, last, take))) await pause(5);
  return { complaints, last };
}

/** Reads until the connection breaks (false) or the run is over (true). */
async function readOnce({ url }: Watched, last: number, take: (text: string) => void): Promise<boolean> {
  try {
    const response = await fetch(`${url}/stream`, { headers: { "last-event-id": last === 0 ? "-1" : String(last) } });
    if (response.status === 404) return true;
    if (response.status !== 200) return false;
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream() as never) ?? []) {
      text += chunk;
      const end = text.lastIndexOf("\n\n") + 2;
      take(text.slice(0, end));
      text = text.slice(end);
    }
    const run = await fetch(url);
    if (run.status === 404) return true;
    const { status } = (await run.json()) as { status: string };
    return status !== "pending" && status !== "running";
  } catch {
    return false;
  }
}
