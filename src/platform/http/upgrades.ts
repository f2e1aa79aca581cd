import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { AcceptSocket, Env } from "./route.ts";

type Fetch = (request: Request, bindings: Env["Bindings"]) => Response | Promise<Response>;

/** Maximum size of a message from a client, the same as the default limit of request bodies. */
const MAX_MESSAGE_BYTES = 20 * 1024 * 1024;

export const isWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === "websocket";

/** Answers requests for WebSockets with the routes of the app, so that all guards of a request apply. */
export class Upgrades {
  readonly #fetch: Fetch;
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });

  constructor(fetch: Fetch) {
    this.#fetch = fetch;
  }

  async handle(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // Node removes its own error listener before it emits `upgrade`; without a listener, a socket error would end the process.
    socket.on("error", () => undefined);
    let serve: Parameters<AcceptSocket>[0] | undefined;
    const accept: AcceptSocket = (given) => {
      serve = given;
    };
    const response = await this.#fetch(toRequest(request), { accept });
    if (serve) this.#server.handleUpgrade(request, socket, head, (accepted) => serve?.(accepted, socket));
    else socket.end(await textOf(response));
  }

  /** Closes all sockets with a code after which clients connect again. */
  stop(): void {
    for (const socket of this.#server.clients) {
      socket.close(RESTART, "The service is stopping.");
      socket.terminate();
    }
  }
}

/** Close code "service restart". */
const RESTART = 1012;

function toRequest({ method = "GET", url = "/", rawHeaders, headers }: IncomingMessage): Request {
  const given = new Headers();
  for (let i = 0; i < rawHeaders.length; i += 2) given.append(rawHeaders[i] as string, rawHeaders[i + 1] as string);
  return new Request(new URL(url, `http://${headers.host ?? "localhost"}`), { method, headers: given });
}

/** Returns a refusal as the text of an HTTP response. */
async function textOf(response: Response): Promise<string> {
  const body = await response.text();
  const headers = [...response.headers, ["connection", "close"], ["content-length", String(Buffer.byteLength(body))]];
  const lines = [
    `HTTP/1.1 ${response.status} ${response.statusText}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}
