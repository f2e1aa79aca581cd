import type { FetchAnswer, FetchRequest } from "../graph-hosts/host.ts";
import type { RunUser } from "./run-user.ts";

/** Answers a request as if the user had sent it. */
export type FetchAs = (user: RunUser, request: Request) => Promise<Response>;

interface Exchange {
  controller: AbortController;
  body?: ReadableStreamDefaultReader<Uint8Array>;
}

/** Headers that say who calls or from where: the run says the first, and there is no connection that has the second. */
const NOT_PASSED_ON = new Set(["authorization", "host", "origin", "x-api-key", "x-tenant-id", "x-auth-scheme"]);

/**
 * The requests that a run's graph has sent to this server and whose responses are not yet read. A response crosses to the host in
 * chunks, each when it is asked for.
 */
export class RunRequests {
  readonly #open = new Map<number, Exchange>();
  readonly #fetchAs: FetchAs;

  constructor(fetchAs: FetchAs) {
    this.#fetchAs = fetchAs;
  }

  /** @returns the head of a response, a chunk of its body, or undefined at the body's end */
  async answer(user: RunUser, request: FetchRequest): Promise<FetchAnswer | Uint8Array | undefined> {
    switch (request.op) {
      case "fetch":
        return this.#fetch(user, request);
      case "fetch_read":
        return this.#read(request.id);
      case "fetch_cancel":
        this.#close(request.id);
        return undefined;
    }
  }

  /** Aborts the requests that are open: the run is over. */
  closeAll(): void {
    for (const id of this.#open.keys()) this.#close(id);
  }

  async #fetch(user: RunUser, request: Extract<FetchRequest, { op: "fetch" }>): Promise<FetchAnswer> {
    const { id, method, path, headers, body } = request;
    const exchange: Exchange = { controller: new AbortController() };
    this.#open.set(id, exchange);
    const response = await this.#fetchAs(
      user,
      new Request(new URL(path, "http://localhost"), {
        method,
        headers: headers.filter(([name]) => !NOT_PASSED_ON.has(name)) as [string, string][],
        body: body as Uint8Array<ArrayBuffer> | undefined,
        signal: exchange.controller.signal,
      }),
    );
    exchange.body = response.body?.getReader();
    if (!exchange.body) this.#open.delete(id);
    else if (!this.#open.has(id)) void exchange.body.cancel();
    return { status: response.status, headers: [...response.headers], has_body: exchange.body !== undefined };
  }

  async #read(id: number): Promise<Uint8Array | undefined> {
    const chunk = await this.#open.get(id)?.body?.read();
    if (chunk && !chunk.done) return chunk.value;
    this.#open.delete(id);
    return undefined;
  }

  #close(id: number): void {
    const exchange = this.#open.get(id);
    this.#open.delete(id);
    exchange?.controller.abort();
    exchange?.body?.cancel().catch(() => undefined);
  }
}
