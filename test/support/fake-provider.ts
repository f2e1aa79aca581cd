import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A request as it came in. */
export interface Received {
  method: string;
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
  /** The body, where it is a form. */
  form: Record<string, string>;
}

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** Sent as it is when it is a text, otherwise as JSON. */
  body?: unknown;
}

/** A server that answers as some provider does that cannot be asked in a test; it keeps what it was asked. */
export class FakeProvider {
  readonly url: string;
  readonly received: Received[] = [];
  reply: (request: Received) => Reply;
  readonly #stop: () => Promise<void>;

  private constructor(url: string, stop: () => Promise<void>) {
    this.url = url;
    this.#stop = stop;
    this.reply = () => ({ status: 404 });
  }

  static async start(): Promise<FakeProvider> {
    const http = createServer().listen(0, "127.0.0.1");
    await once(http, "listening");
    const provider = new FakeProvider(`http://127.0.0.1:${(http.address() as AddressInfo).port}`, async () => {
      http.close();
      http.closeAllConnections();
      await once(http, "close");
    });
    http.on("request", async (request, response) => {
      const chunks = await request.toArray();
      const body = Buffer.concat(chunks).toString();
      const { method = "", url: path = "", headers } = request;
      const form = Object.fromEntries(new URLSearchParams(body));
      const received = { method, path, headers, body, form };
      provider.received.push(received);
      const { status = 200, headers: more, body: answer = {} } = provider.reply(received);
      const text = typeof answer === "string" ? answer : JSON.stringify(answer);
      response.writeHead(status, { "content-type": "application/json", ...more }).end(text);
    });
    return provider;
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}
