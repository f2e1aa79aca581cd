import type { TestService } from "./service.ts";
import { parseSse, type SseEvent } from "./sse.ts";

/** Reads the events of a run from its start until one fits, then hangs up. Returns what was read. */
export async function readUntil(
  { threadmill }: Pick<TestService, "threadmill">,
  { thread_id, run_id }: { thread_id: string; run_id: string },
  fits: (event: SseEvent) => boolean,
): Promise<SseEvent[]> {
  const hangUp = new AbortController();
  const request = new Request(`http://localhost/threads/${thread_id}/runs/${run_id}/stream`, {
    headers: { "last-event-id": "-1" },
    signal: hangUp.signal,
  });
  const response = await threadmill.fetch(request);
  const reader = (response.body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream() as never)
    .getReader();
  let text = "";
  for (;;) {
    const { done, value } = (await reader.read()) as { done: boolean; value: string };
    text += value ?? "";
    const events = parseSse(text.slice(0, text.lastIndexOf("\n\n") + 2));
    if (events.some(fits)) {
      await reader.cancel();
      hangUp.abort();
      return events;
    }
    if (done) throw new Error(`The stream ended before the expected event: ${text}`);
  }
}
