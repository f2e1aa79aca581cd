import type { TestService } from "./service.ts";
import { parseSse, type SseEvent } from "./sse.ts";

/** A stream that is read as it comes. */
export interface OpenStream {
  status: number;
  headers: Headers;
  /** All events so far. */
  events: SseEvent[];
  /** Reads on until the events so far fit; fails when the stream ends before. */
  until(fits: (events: SseEvent[]) => unknown): Promise<SseEvent[]>;
  /** Reads to the end. */
  rest(): Promise<SseEvent[]>;
  hangUp(): Promise<void>;
}

/** Opens a stream without a socket: with GET, or with POST if there is a body. */
export async function openStream(
  { threadmill }: Pick<TestService, "threadmill">,
  path: string,
  headers: Record<string, string> = {},
  sent?: object,
): Promise<OpenStream> {
  const abort = new AbortController();
  const post = sent && { method: "POST", body: JSON.stringify(sent) };
  const request = new Request(`http://localhost${path}`, {
    ...post,
    headers: { ...(sent && { "content-type": "application/json" }), ...headers },
    signal: abort.signal,
  });
  const response = await threadmill.fetch(request);
  const body = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream() as never);
  const reader = body.getReader() as ReadableStreamDefaultReader<string>;
  const stream: OpenStream = {
    status: response.status,
    headers: response.headers,
    events: [],
    async until(fits) {
      while (!fits(stream.events)) if (!(await readMore())) throw new Error(`The stream ended before: ${text}`);
      return stream.events;
    },
    async rest() {
      while (await readMore());
      return stream.events;
    },
    async hangUp() {
      await reader.cancel();
      abort.abort();
    },
  };
  let text = "";
  async function readMore(): Promise<boolean> {
    const { done, value = "" } = await reader.read();
    text += value;
    stream.events = parseSse(text.slice(0, text.lastIndexOf("\n\n") + 2));
    return !done;
  }
  return stream;
}
