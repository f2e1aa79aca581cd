import { randomUUID } from "node:crypto";
import type { ServerProcess } from "../support/process.ts";
import { parseSse, type SseEvent } from "../support/sse.ts";
import { until } from "../support/until.ts";

/** Runs of the graph of test/graphs/shared, as clients of one of several processes see them. */
export interface Created {
  thread_id: string;
  run_id: string;
}

export const pathOf = ({ thread_id, run_id }: Created) => `/threads/${thread_id}/runs/${run_id}`;

/** The process of each step of a run, once it has ended, in this process or another. */
export const pidsOf = async ({ url }: ServerProcess, run: Created): Promise<number[]> =>
  ((await (await fetch(`${url}${pathOf(run)}/join`)).json()) as { pids: number[] }).pids;

export async function create(
  { url }: ServerProcess,
  input: object,
  thread_id: string = randomUUID(),
  assistant_id = "steps",
): Promise<Created> {
  const answer = await fetch(`${url}/threads/${thread_id}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      assistant_id,
      input,
      if_not_exists: "create",
      stream_mode: ["custom", "values"],
      multitask_strategy: "enqueue",
    }),
  });
  if (answer.status !== 200) throw new Error(await answer.text());
  return (await answer.json()) as Created;
}

/** Reads all events of a run from the first one, as they come. */
export function read({ url }: ServerProcess, run: Created) {
  const reading = fetch(`${url}${pathOf(run)}/stream`, { headers: { "last-event-id": "-1" } }).then(({ body }) =>
    (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream() as never).getReader(),
  ) as Promise<ReadableStreamDefaultReader<string>>;
  let text = "";
  const events = () => parseSse(text.slice(0, text.lastIndexOf("\n\n") + 2)) as SseEvent[];
  const more = async () => {
    const { done, value = "" } = await (await reading).read();
    text += value;
    return !done;
  };
  return {
    async until(fits: (events: SseEvent[]) => boolean): Promise<void> {
      await until("the events are there", async () => fits(events()) || !(await more()));
    },
    async rest(): Promise<SseEvent[]> {
      while (await more());
      return events();
    },
  };
}
