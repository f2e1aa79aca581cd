import { connect, type Socket } from "node:net";

export interface StreamAddress {
  port: number;
  path: string;
}

/** The callbacks of a reader. */
export interface StreamListener {
  /** The head of the response has arrived with status 200. */
  onOpen?(): void;
  /** The text of an event. */
  onEvent(event: string): void;
  /** The stream has ended, or failed with an error. */
  onEnd(error?: Error): void;
}

/** The read buffer of all readers of this process. Each read is processed synchronously. */
const buffer = Buffer.alloc(256 * 1024);

/**
 * Reads an event stream from its first event. Supports only the HTTP features that the measured servers use, so that a thousand readers
 * use as little CPU time as possible.
 */
export function readStream({ port, path }: StreamAddress, listener: StreamListener): Socket {
  const decoder = new Decoder(listener);
  const socket = connect({
    port,
    host: "127.0.0.1",
    onread: {
      buffer,
      callback: (length) => {
        try {
          decoder.write(buffer.toString("latin1", 0, length));
          if (decoder.ended) socket.destroy();
        } catch (error) {
          socket.destroy(error as Error);
        }
        return true;
      },
    },
  });
  let failure: Error | undefined;
  socket.on("error", (error) => {
    failure = error;
  });
  socket.on("close", () => {
    if (decoder.ended) listener.onEnd();
    else listener.onEnd(failure ?? new Error("The connection was closed before the end of the stream."));
  });
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\naccept: text/event-stream\r\nlast-event-id: -1\r\n\r\n`,
  );
  return socket;
}

/** Decodes the events of a chunked response. Its input has one character per byte. */
class Decoder {
  readonly #listener: StreamListener;
  /** Incomplete head, chunk length and event. */
  #head: string | undefined = "";
  #line = "";
  #event = "";
  /** Remaining characters of the chunk and the line break after it. */
  #left = 0;
  ended = false;

  constructor(listener: StreamListener) {
    this.#listener = listener;
  }

  write(text: string): void {
    let at = this.#head === undefined ? 0 : this.#readHead(text);
    while (at < text.length && !this.ended) at = this.#left > 0 ? this.#readBody(text, at) : this.#readLength(text, at);
  }

  /** @returns the start of the body */
  #readHead(text: string): number {
    const [before, head] = [this.#head?.length ?? 0, this.#head + text];
    const end = head.indexOf("\r\n\r\n");
    this.#head = end === -1 ? head : undefined;
    if (end === -1) return text.length;
    if (!head.startsWith("HTTP/1.1 200 ") || !/^transfer-encoding: chunked\r$/im.test(`${head.slice(0, end)}\r\n`))
      throw new Error(`Unexpected response of a stream: ${head.slice(0, 1_000)}`);
    this.#listener.onOpen?.();
    return end + 4 - before;
  }

  #readLength(text: string, from: number): number {
    const end = text.indexOf("\n", from);
    this.#line += text.slice(from, end === -1 ? text.length : end);
    if (end === -1) return text.length;
    const length = Number.parseInt(this.#line, 16);
    this.#line = "";
    if (!(length >= 0)) throw new Error("A chunk has no length.");
    if (length === 0) this.ended = true;
    this.#left = length + 2;
    return end + 1;
  }

  #readBody(text: string, from: number): number {
    const end = Math.min(from + this.#left, text.length);
    // Without the line break after the chunk.
    const length = Math.min(end - from, Math.max(0, this.#left - 2));
    this.#left -= end - from;
    if (length > 0) this.#readEvents(text.slice(from, from + length));
    return end;
  }

  #readEvents(text: string): void {
    const parts = (this.#event + text).split("\n\n");
    this.#event = parts.pop() ?? "";
    for (const part of parts) if (!part.startsWith(":")) this.#listener.onEvent(part);
  }
}

/** Checks that the IDs of a stream are consecutive, and counts the custom events. */
export class Continuity {
  custom = 0;
  /** Events whose ID is not the next one. */
  gaps = 0;
  #last: number | undefined;

  add(event: string): void {
    if (event.startsWith("event: custom")) this.custom += 1;
    const id = Number(event.slice(event.lastIndexOf("\nid: ") + 5));
    // Some servers count from 0.
    const isNext = this.#last === undefined ? id === 0 || id === 1 : id === this.#last + 1;
    if (!isNext) this.gaps += 1;
    this.#last = id;
  }
}
