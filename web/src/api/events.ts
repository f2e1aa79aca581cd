import { pause } from "./pause.ts";
import { send } from "./request.ts";

export interface ServerEvent {
  event: string;
  /** The text of the `data` lines, which is JSON in all streams of ours. */
  data: string;
  id: string | undefined;
}

export interface EventsOptions {
  method?: "GET" | "POST";
  body?: unknown;
  query?: Record<string, string | undefined>;
  /** Everything after this event is told; undefined from the start, or as the route has it. */
  last_event_id?: string;
  signal: AbortSignal;
}

/** How long to wait before the first to the last attempt to come back. */
const PAUSES_MS = [250, 500, 1_000, 2_000, 4_000, 8_000];

/**
 * The events of a stream, with the key in a header, which an EventSource cannot send. A connection that breaks is taken up
 * again after the last event that has an id, so nothing is told twice and nothing is left out; one that the server ends is over. A
 * POST is not sent twice: only what GET reads is taken up again.
 *
 * @throws RequestError when the server refuses it, or cannot be reached for 15 s
 */
export async function* readEvents(path: string, options: EventsOptions): AsyncGenerator<ServerEvent> {
  const { method = "GET", signal } = options;
  let last = options.last_event_id;
  for (let failures = 0; ; ) {
    try {
      const response = await send(method, path, {
        body: options.body,
        query: options.query,
        headers: { accept: "text/event-stream", ...(last !== undefined && { "last-event-id": last }) },
        signal,
      });
      for await (const event of eventsOf(response.body as ReadableStream<Uint8Array>)) {
        failures = 0;
        last = event.id ?? last;
        yield event;
      }
      return;
    } catch (error) {
      const pause_ms = PAUSES_MS[failures++];
      const isRefused = error instanceof Error && "status" in error && error.status !== 0 && error.status !== 503;
      if (signal.aborted || isRefused || method !== "GET" || pause_ms === undefined) throw error;
      await pause(pause_ms, signal);
    }
  }
}

/** The events of a body as it arrives. Lines end with LF, CRLF or CR; comments are left out. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  try {
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      const blocks = text.split(/\r\n\r\n|\n\n|\r\r/);
      text = blocks.pop() as string;
      for (const block of blocks) {
        const event = eventOf(block);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function eventOf(block: string): ServerEvent | undefined {
  let event = "message";
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  return data.length > 0 || id !== undefined ? { event, data: data.join("\n"), id } : undefined;
}
