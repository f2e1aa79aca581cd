import { connect, type Socket } from "node:net";

/** Where a stream is. */
export interface StreamAddress {
  port: number;
  path: string;
}

/** What a reader tells. */
export interface Hearer {
  /** The head of the answer has come, and it is 200. */
  onOpen?(): void;
  /** One event, as it was written. */
  onEvent(event: string): void;
  /** The stream has ended as it should, or an error says how it broke. */
  onEnd(error?: Error): void;
}

/** What the readers of this process read into; each is done with it before another one's turn. */
const incoming = Buffer.alloc(256 * 1024);

/**
 * Reads an event stream from its first event. Of all of HTTP it knows only what servers answer here, so that a
 * thousand of them take as little as can be from what they share the machine with.
 */
export function readStream({ port, path }: StreamAddress, hearer: Hearer): Socket {
  const decoder = new Decoder(hearer);
  const socket = connect({
    port,
    host: "127.0.0.1",
    onread: {
      buffer: incoming,
      callback: (length) => {
        try {
          decoder.take(incoming.toString("latin1", 0, length));
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
    if (decoder.ended) hearer.onEnd();
    else hearer.onEnd(failure ?? new Error("The connection was closed before the stream's end."));
  });
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\naccept: text/event-stream\r\nlast-event-id: -1\r\n\r\n`,
  );
  return socket;
}

/** From the bytes of a chunked answer, one character each, to its events. */
class Decoder {
  readonly #hearer: Hearer;
  /** What waits for the rest of the head, of a chunk's length or of an event. */
  #head: string | undefined = "";
  #line = "";
  #event = "";
  /** Characters of this chunk that are still to come, with the line break behind it. */
  #left = 0;
  ended = false;

  constructor(hearer: Hearer) {
    this.#hearer = hearer;
  }

  take(text: string): void {
    let at = this.#head === undefined ? 0 : this.#takeHead(text);
    while (at < text.length && !this.ended) at = this.#left > 0 ? this.#takeBody(text, at) : this.#takeLength(text, at);
  }

  /** @returns where the body begins */
  #takeHead(text: string): number {
    const [before, head] = [this.#head?.length ?? 0, this.#head + text];
    const end = head.indexOf("\r\n\r\n");
    this.#head = end === -1 ? head : undefined;
    if (end === -1) return text.length;
    if (!head.startsWith("HTTP/1.1 200 ") || !/^transfer-encoding: chunked\r$/im.test(`${head.slice(0, end)}\r\n`))
      throw new Error(`A stream answered: ${head.slice(0, 1_000)}`);
    this.#hearer.onOpen?.();
    return end + 4 - before;
  }

  #takeLength(text: string, from: number): number {
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

  #takeBody(text: string, from: number): number {
    const end = Math.min(from + this.#left, text.length);
    // The line break behind the chunk is no part of it.
    const length = Math.min(end - from, Math.max(0, this.#left - 2));
    this.#left -= end - from;
    if (length > 0) this.#takeEvents(text.slice(from, from + length));
    return end;
  }

  #takeEvents(text: string): void {
    const parts = (this.#event + text).split("\n\n");
    this.#event = parts.pop() ?? "";
    for (const part of parts) if (!part.startsWith(":")) this.#hearer.onEvent(part);
  }
}

/** Whether a stream's events have the numbers one after another from the first, and how many of them a node wrote. */
export class Continuity {
  custom = 0;
  /** Events whose number is not the next one. */
  breaks = 0;
  #last: number | undefined;

  see(event: string): void {
    if (event.startsWith("event: custom")) this.custom += 1;
    const id = Number(event.slice(event.lastIndexOf("\nid: ") + 5));
    // Some count from 0.
    const isNext = this.#last === undefined ? id === 0 || id === 1 : id === this.#last + 1;
    if (!isNext) this.breaks += 1;
    this.#last = id;
  }
}
