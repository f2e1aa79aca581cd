import { type EventSourceMessage, EventSourceParserStream } from "eventsource-parser/stream";
import { pause } from "./pause.ts";
import { send } from "./request.ts";

export interface ServerEvent {
  event: string;
  /** The event's `data` field, which contains JSON in all streams of the server. */
  data: string;
  id: string | undefined;
}

export interface EventsOptions {
  method?: "GET" | "POST";
  body?: unknown;
  query?: Record<string, string | undefined>;
  /** ID of the last event that the caller has: the stream resumes after this event. The default depends on the route. */
  last_event_id?: string;
  signal: AbortSignal;
}

/** No response, or one of a proxy while the server restarts. */
export const TEMPORARY: ReadonlySet<unknown> = new Set([0, 502, 503, 504]);

const RECONNECT_DELAYS_MS = [250, 500, 1_000, 2_000, 4_000, 8_000];

/**
 * Reads an event stream with `fetch`, because EventSource cannot send the API key in a header. After a lost connection, a GET request
 * resumes after the last event ID, without gaps or duplicates. A POST request is never repeated.
 *
 * @throws RequestError if the server rejects the request or a GET request cannot be resumed within about 15 s; AbortError after an abort
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
      for await (const { event = "message", data, id } of eventsOf(response.body as ReadableStream<Uint8Array>)) {
        failures = 0;
        last = id ?? last;
        yield { event, data, id };
      }
      return;
    } catch (error) {
      const delay_ms = RECONNECT_DELAYS_MS[failures++];
      const isRefused = error instanceof Error && "status" in error && !TEMPORARY.has(error.status);
      if (signal.aborted || isRefused || method !== "GET" || delay_ms === undefined) throw error;
      await pause(delay_ms, signal);
    }
  }
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<EventSourceMessage> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
