import { accessEndError, type ClientAbort } from "../../platform/http/client-abort.ts";
import { type Sink, streamedResponse } from "../../platform/http/streamed-body.ts";
import { countStream } from "../../platform/lib/thread-heap.ts";
import type { StreamedEvent } from "../engine/index.ts";

export interface SseOptions {
  /** Sends only events of these modes, besides `metadata`, `error` and `gap` events. */
  modes?: readonly string[];
  /** Sends only events of these namespaces, besides those. The root graph has the namespace "". */
  namespaces?: readonly string[];
  /** Interval of comments in an idle stream. They prevent proxies and clients from closing the connection. */
  heartbeat_ms: number;
  formatter: SseFormatter;
  headers?: Record<string, string>;
  /** Aborted by the response when its reader disconnects. */
  client: ClientAbort;
  onError(error: unknown): void;
}

const HEARTBEAT = ": heartbeat\n\n";

/** Sends each batch of events as one HTTP chunk. The next batch is read after this one is sent, so a slow reader buffers one batch. */
export function sseResponse(batches: AsyncGenerator<readonly StreamedEvent[]>, options: SseOptions): Response {
  const write = (sink: Sink) => writeEvents(batches, sink, options);
  const headers = {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
    ...options.headers,
  };
  return streamedResponse(write, headers, {
    direct: options.client.direct,
    onCancel: () => options.client.abort(new Error("The client disconnected.")),
  });
}

async function writeEvents(
  batches: AsyncGenerator<readonly StreamedEvent[]>,
  sink: Sink,
  { modes, namespaces, heartbeat_ms, formatter, client, onError }: SseOptions,
): Promise<void> {
  const isSelected = selectionOf(modes, namespaces);
  const unwatch = client.watchAccess();
  countStream(1);
  let keepsUp = true;
  const beat = async () => {
    if (!keepsUp) return;
    keepsUp = sink.write(HEARTBEAT);
    if (keepsUp) return;
    await sink.drained(client.signal);
    keepsUp = true;
  };
  // After an error, there is no reader.
  const heart = setInterval(() => void beat().catch(() => undefined), heartbeat_ms);
  try {
    for await (const events of batches) {
      const text = formatter.textOf(isSelected ? events.filter(({ event }) => isSelected(event)) : events);
      if (text === "") continue;
      heart.refresh();
      if (!keepsUp) await sink.drained(client.signal);
      keepsUp = sink.write(text);
      if (keepsUp) continue;
      await sink.drained(client.signal);
      keepsUp = true;
    }
    sink.end();
  } catch (error) {
    // The status line is already sent, so the error goes to the log.
    if (!client.signal.aborted) onError(error);
    const refusal = accessEndError(client);
    // Does not wait for a reader with a full buffer.
    if (!refusal || !keepsUp) return sink.fail(error);
    sink.write(formatter.textOf([formatter.errorEvent(refusal)]));
    sink.end();
  } finally {
    clearInterval(heart);
    unwatch();
    countStream(-1);
  }
}

/** Event and id must fit on one line each; namespaces of graphs may contain line breaks. */
const oneLine = (text: string) => text.replaceAll(/[\r\n]/g, " ");

/** Formats each event once for all readers of a run, who receive the same event objects. */
export class SseFormatter {
  readonly #texts = new WeakMap<StreamedEvent, string>();

  /** A reader that keeps up receives single events. Readers share the text of a single event. */
  textOf(events: readonly StreamedEvent[]): string {
    return events.length === 1
      ? this.#format(events[0] as StreamedEvent)
      : events.map((event) => this.#format(event)).join("");
  }

  /** Returns the last event for a reader that has lost access. */
  errorEvent(error: { error: string; message: string }): StreamedEvent {
    return { event: "error", data: JSON.stringify(error) };
  }

  #format(event: StreamedEvent): string {
    const known = this.#texts.get(event);
    if (known !== undefined) return known;
    const text = this.frame(event);
    this.#texts.set(event, text);
    return text;
  }

  protected frame({ event, data, seq }: StreamedEvent): string {
    return `event: ${oneLine(event)}\ndata: ${data}\n${seq === undefined ? "" : `id: ${seq}\n`}\n`;
  }
}

/** For protocols whose clients read only the data of an event, which contains its type. */
export class DataFormatter extends SseFormatter {
  protected override frame({ data }: StreamedEvent): string {
    return `data: ${data}\n\n`;
  }
}

/** Events that each client needs, whatever it selects. */
const OF_STREAM: ReadonlySet<string> = new Set(["metadata", "error", "gap"]);

/**
 * Returns a function that tests the name of an event: `updates|ns` is of the mode updates and the namespace `ns`, `messages/partial` of
 * messages, `messages` of messages-tuple.
 */
function selectionOf(modes?: readonly string[], namespaces?: readonly string[]) {
  if (!modes && !namespaces) return undefined;
  return (event: string): boolean => {
    const [base = "", ...namespace] = event.split("|");
    if (OF_STREAM.has(base)) return true;
    if (namespaces && !namespaces.includes(namespace.join("|"))) return false;
    return !modes || modes.includes(base === "messages" ? "messages-tuple" : (base.split("/")[0] ?? base));
  };
}
