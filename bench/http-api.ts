import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";

interface RequestOptions {
  /** Sent as JSON; bytes are sent as they are. */
  body?: object | Uint8Array;
  /** Expected status; default 200. */
  status?: number;
}

/** A minimal HTTP client for a local server, with keep-alive connections. */
export class HttpApi {
  readonly port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 256 });

  readonly #headers: Record<string, string>;

  /** @param headers sent with each request */
  constructor(port: number, headers: Record<string, string> = {}) {
    this.port = port;
    this.#headers = headers;
  }

  /** @returns the body of the response */
  async send(method: string, path: string, options: RequestOptions = {}): Promise<string> {
    return await textOf(await this.open(method, path, options));
  }

  /** @returns the response with an unread body */
  async open(method: string, path: string, { body, status = 200 }: RequestOptions = {}): Promise<IncomingMessage> {
    const text = body instanceof Uint8Array ? body : body && JSON.stringify(body);
    const headers = text !== undefined && {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    };
    const sent = request({
      host: "127.0.0.1",
      port: this.port,
      path,
      method,
      agent: this.#agent,
      headers: { ...this.#headers, ...headers },
    });
    // Errors after the start of the response are also emitted on the response.
    sent.on("error", () => undefined);
    sent.end(text);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    if (response.statusCode !== status)
      throw new Error(`${method} ${path} answered ${response.statusCode}: ${await textOf(response)}`);
    return response;
  }

  close(): void {
    this.#agent.destroy();
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  response.setEncoding("utf8");
  let text = "";
  for await (const chunk of response) text += chunk;
  return text;
}
