const encoder = new TextEncoder();

/** Where the text of a stream goes. */
export interface Sink {
  /** @returns whether the reader keeps up; if not, {@link Sink.drained} says when it has caught up */
  write(text: string): boolean;
  /** @throws the reason of `signal` */
  drained(signal: AbortSignal): Promise<void>;
  end(): void;
  fail(error: unknown): void;
}

/** How the body of a response is written to something else than the body itself. */
const writers = new WeakMap<ReadableStream, (sink: Sink) => Promise<void>>();

/** What writes the text of a response straight to a sink; undefined when its body is not made for it. */
export const writerOf = ({ body }: Response): ((sink: Sink) => Promise<void>) | undefined =>
  body ? writers.get(body) : undefined;

/** A body that is written once somebody reads it, or by {@link writerOf} to something else. */
export function writtenBody(write: (sink: Sink) => Promise<void>, onCancel?: () => void): ReadableStream<Uint8Array> {
  let wanted: PromiseWithResolvers<void> | undefined;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (wanted) return wanted.resolve();
        wanted = Promise.withResolvers();
        void write({
          write(text) {
            wanted = Promise.withResolvers();
            controller.enqueue(encoder.encode(text));
            return false;
          },
          drained: () => wanted?.promise ?? Promise.resolve(),
          end: () => controller.close(),
          fail: (error) => controller.error(error),
        });
      },
      ...(onCancel && { cancel: onCancel }),
    },
    { highWaterMark: 0 },
  );
  writers.set(body, write);
  return body;
}
