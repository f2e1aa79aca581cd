import type { StreamedEvent } from "../agents/runs.ts";

const encoder = new TextEncoder();

export interface SseOptions {
  /** Only events of these modes, besides those that every stream has. */
  modes?: readonly string[];
  /** A comment is sent after this much silence, so that proxies and clients see a living connection. */
  heartbeat_ms: number;
  headers?: Record<string, string>;
  /** Aborted by the response when its reader is gone. */
  gone: AbortController;
  onError(error: unknown): void;
}

/**
 * Server-sent events from batches of events, one HTTP chunk a batch. Nothing is read ahead: the next batch is
 * fetched when the client has taken the last, so a slow reader costs one batch of memory.
 */
export function sseResponse(batches: AsyncGenerator<StreamedEvent[]>, options: SseOptions): Response {
  const { heartbeat_ms, gone, headers, onError } = options;
  const wanted = options.modes && new Set(options.modes);
  let next: Promise<IteratorResult<StreamedEvent[]>> | undefined;
  /** What to send next; undefined at the end. */
  const nextText = async (): Promise<string | undefined> => {
    for (;;) {
      next ??= batches.next();
      const result = await withHeartbeat(next, heartbeat_ms);
      if (result === HEARTBEAT) return ": heartbeat\n\n";
      next = undefined;
      if (result.done) return undefined;
      const events = wanted ? result.value.filter(({ event }) => isOfMode(event, wanted)) : result.value;
      if (events.length > 0) return events.map(format).join("");
    }
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const text = await nextText();
          if (text === undefined) controller.close();
          else controller.enqueue(encoder.encode(text));
        } catch (error) {
          // The status is sent already: the reason can only go to the log.
          if (!gone.signal.aborted) onError(error);
          controller.error(error);
        }
      },
      cancel() {
        gone.abort(new Error("The reader is gone."));
        next?.catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      ...headers,
    },
  });
}

const HEARTBEAT = Symbol();

async function withHeartbeat<T>(promise: Promise<T>, ms: number): Promise<T | typeof HEARTBEAT> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<typeof HEARTBEAT>((resolve) => {
    timer = setTimeout(() => resolve(HEARTBEAT), ms);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}

/** Event and id on one line each, whatever a graph calls its namespaces. */
const oneLine = (text: string) => text.replaceAll(/[\r\n]/g, " ");

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
