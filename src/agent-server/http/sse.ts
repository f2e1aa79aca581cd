import { endOfAccess, type Gone } from "../../platform/http/client-abort.ts";
import { type Sink, writtenBody } from "../../platform/http/written-body.ts";
import type { StreamedEvent } from "../engine/event-log.ts";

export interface SseOptions {
  /** Only events of these modes, besides those that every stream has. */
  modes?: readonly string[];
  /** A comment is sent after this much silence, so that proxies and clients see a living connection. */
  heartbeat_ms: number;
  headers?: Record<string, string>;
  /** Aborted by the response when its reader is gone. */
  gone: Gone;
  onError(error: unknown): void;
}

const HEARTBEAT = ": heartbeat\n\n";

/**
 * Server-sent events from batches of events, one HTTP chunk a batch. Nothing is read ahead: the next batch is
 * fetched when the client has taken the last, so a slow reader costs one batch of memory.
 */
export function sseResponse(batches: AsyncGenerator<readonly StreamedEvent[]>, options: SseOptions): Response {
  const write = (sink: Sink) => writeEvents(batches, sink, options);
  const body = writtenBody(write, () => options.gone.abort(new Error("The reader is gone.")));
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      ...options.headers,
    },
  });
}

async function writeEvents(
  batches: AsyncGenerator<readonly StreamedEvent[]>,
  sink: Sink,
  { modes, heartbeat_ms, gone, onError }: SseOptions,
): Promise<void> {
  const wanted = modes && new Set(modes);
  const unwatch = gone.watchAccess();
  let keepsUp = true;
  const heart = setInterval(() => {
    if (keepsUp) keepsUp = sink.write(HEARTBEAT);
  }, heartbeat_ms);
  try {
    for await (const events of batches) {
      const text = textOf(wanted ? events.filter(({ event }) => isOfMode(event, wanted)) : events);
      if (text === "") continue;
      heart.refresh();
      if (!keepsUp) await sink.drained(gone.signal);
      keepsUp = sink.write(text);
      if (keepsUp) continue;
      await sink.drained(gone.signal);
      keepsUp = true;
    }
    sink.end();
  } catch (error) {
    // The status is sent already: the reason can only go to the log.
    if (!gone.signal.aborted) onError(error);
    const refusal = endOfAccess(gone);
    // A reader that lags behind is not waited for.
    if (!refusal || !keepsUp) return sink.fail(error);
    sink.write(format({ event: "error", data: JSON.stringify(refusal) }));
    sink.end();
  } finally {
    clearInterval(heart);
    unwatch();
  }
}

/** Event and id on one line each, whatever a graph calls its namespaces. */
const oneLine = (text: string) => text.replaceAll(/[\r\n]/g, " ");

/** A reader that keeps up gets events one by one, and its text is everybody's: a joined one would be its own. */
const textOf = (events: readonly StreamedEvent[]): string =>
  events.length === 1 ? format(events[0] as StreamedEvent) : events.map(format).join("");

/** All readers of a run are told the same events: each is put into words once. */
const formatted = new WeakMap<StreamedEvent, string>();

function format(event: StreamedEvent): string {
  const known = formatted.get(event);
  if (known !== undefined) return known;
  const { data, seq } = event;
  const text = `event: ${oneLine(event.event)}\ndata: ${data}\n${seq === undefined ? "" : `id: ${seq}\n`}\n`;
  formatted.set(event, text);
  return text;
}

/** Whether an event belongs to one of the modes: `updates|ns` to updates, `messages/partial` to messages. */
function isOfMode(event: string, wanted: ReadonlySet<string>): boolean {
  const base = event.split("|")[0] ?? event;
  if (base === "metadata" || base === "error" || base === "gap") return true;
  if (base === "messages") return wanted.has("messages-tuple");
  return wanted.has(base.split("/")[0] ?? base);
}
