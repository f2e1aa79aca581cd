import { once } from "node:events";
import type { ServerResponse } from "node:http";

const encoder = new TextEncoder();

/** The destination of a streamed text. */
export interface Sink {
  /** @returns false if the reader is slow; then wait for {@link Sink.drained} before the next write */
  write(text: string): boolean;
  /** @throws the reason of `signal` */
  drained(signal: AbortSignal): Promise<void>;
  end(): void;
  fail(error: unknown): void;
}

type WriteText = (sink: Sink) => Promise<void>;

/**
 * A response body whose text is produced by a function: an event stream, or a long list. {@link sendStreamedBody} calls the function
 * with Node's response; any other reader of the stream gets the same text from it.
 */
export class StreamedBody extends ReadableStream<Uint8Array> {
  readonly writeTo: WriteText;

  constructor(write: WriteText, onCancel?: () => void) {
    let pulled: PromiseWithResolvers<void> | undefined;
    super(
      {
        pull(controller) {
          if (pulled) return pulled.resolve();
          pulled = Promise.withResolvers();
          void write({
            write(text) {
              pulled = Promise.withResolvers();
              controller.enqueue(encoder.encode(text));
              return false;
            },
            drained: () => pulled?.promise ?? Promise.resolve(),
            end: () => controller.close(),
            fail: (error) => controller.error(error),
          });
        },
        ...(onCancel && { cancel: onCancel }),
      },
      { highWaterMark: 0 },
    );
    this.writeTo = write;
  }
}

/**
 * Writes a {@link StreamedBody} directly to Node's response; the adapter sends all other responses. The detour through a
 * `ReadableStream` costs 14 KB for each stream, and 9 ms for 3 MB.
 *
 * @returns whether the response has a streamed body
 */
export function sendStreamedBody(response: Response, outgoing: ServerResponse): boolean {
  const { body } = response;
  // Headers are read only after this check: reading them creates a Headers object for each response of the service.
  if (!(body instanceof StreamedBody)) return false;
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  void body.writeTo({
    write: (text) => outgoing.write(text),
    async drained(signal) {
      if (outgoing.writableNeedDrain) await once(outgoing, "drain", { signal });
    },
    end: () => outgoing.end(),
    fail: () => outgoing.destroy(),
  });
  return true;
}
