import { unlessAborted } from "../../platform/lib/signal.ts";
import type { FetchAnswer, FetchRequest, NewFetch } from "./host-http.ts";

/** Creates the request that a message describes. */
export const requestOf = ({ path, method, headers, body }: NewFetch, signal: AbortSignal): Request =>
  new Request(new URL(path, "http://localhost"), {
    method,
    headers: headers as [string, string][],
    body: body as Uint8Array<ArrayBuffer> | undefined,
    signal,
  });

/**
 * Sends a request to the other thread, whose {@link FetchResponses} answer it.
 *
 * @throws `signal.reason` when the signal is aborted, which also ends the body of the response
 */
export async function fetchByMessages(
  request: NewFetch,
  signal: AbortSignal,
  send: (message: FetchRequest) => Promise<unknown>,
  onEnd: () => void = () => undefined,
): Promise<Response> {
  const { id } = request;
  const end = () => {
    signal.removeEventListener("abort", cancel);
    onEnd();
  };
  const cancel = () => {
    end();
    void send({ op: "fetch_cancel", id }).catch(() => undefined);
  };
  const sendUnlessAborted = async (message: FetchRequest) => {
    try {
      return await unlessAborted(signal, send(message));
    } catch (error) {
      end();
      throw error;
    }
  };
  if (signal.aborted) {
    end();
    throw signal.reason;
  }
  signal.addEventListener("abort", cancel, { once: true });
  const { status, headers, has_body } = (await sendUnlessAborted(request)) as FetchAnswer;
  if (!has_body) end();
  const read = async (controller: ReadableStreamDefaultController) => {
    const chunk = await sendUnlessAborted({ op: "fetch_read", id });
    if (chunk) return controller.enqueue(chunk);
    end();
    controller.close();
  };
  // Chunks are not prefetched, so they do not accumulate in memory for a slow reader.
  const body = new ReadableStream({ pull: read, cancel }, { highWaterMark: 0 });
  return new Response(has_body ? body : null, { status, headers: headers as [string, string][] });
}

interface Exchange {
  controller: AbortController;
  body?: ReadableStreamDefaultReader<Uint8Array>;
}

/** The open responses to the other thread, which reads them in chunks. */
export class FetchResponses {
  readonly #open = new Map<number, Exchange>();

  /** @param respond gets a signal that is aborted when the response is no longer needed */
  async start(id: number, respond: (signal: AbortSignal) => Promise<Response>): Promise<FetchAnswer> {
    const exchange: Exchange = { controller: new AbortController() };
    this.#open.set(id, exchange);
    try {
      const response = await respond(exchange.controller.signal);
      exchange.body = response.body?.getReader();
      if (exchange.body && !this.#open.has(id)) void exchange.body.cancel().catch(() => undefined);
      return { status: response.status, headers: [...response.headers], has_body: exchange.body !== undefined };
    } finally {
      if (!exchange.body) this.#open.delete(id);
    }
  }

  /** @returns a chunk of the response body; undefined at its end */
  async read(id: number): Promise<Uint8Array | undefined> {
    let chunk: Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>> | undefined;
    try {
      chunk = await this.#open.get(id)?.body?.read();
    } finally {
      if (!chunk || chunk.done) this.#open.delete(id);
    }
    return chunk?.value;
  }

  cancel(id: number): void {
    const exchange = this.#open.get(id);
    this.#open.delete(id);
    exchange?.controller.abort();
    exchange?.body?.cancel().catch(() => undefined);
  }

  cancelAll(): void {
    for (const id of this.#open.keys()) this.cancel(id);
  }
}
