import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { WebSocketServer } from "ws";
import type { Config } from "../config/config.ts";
import type { AcceptSocket, Env } from "../platform/http/route.ts";
import { answer } from "../platform/http/streamed-body.ts";
import type { DeploymentFront } from "./deployment-front.ts";

export interface ServerOptions {
  fetch(request: Request, bindings?: Env["Bindings"]): Response | Promise<Response>;
  /** Undefined if the server does not forward requests to deployments. */
  front: DeploymentFront | undefined;
}

export interface Listening {
  url: string;
  /** Stops accepting connections, stops the service, and closes the remaining connections before its database. */
  stop(): Promise<void>;
}

/** Stops the service. Before its database closes, it calls the function. */
type Stop = (closeConnections: () => void) => Promise<void>;

export async function listen(config: Config, service: ServerOptions & { stop: Stop }): Promise<Listening> {
  const upgrades = new Upgrades(service.fetch);
  const server = createHttpServer(service, upgrades);
  if (config.listen_fd === undefined) server.listen(config.port, config.host);
  else server.listen({ fd: config.listen_fd });
  await once(server, "listening");
  return {
    url: urlOf(config, server),
    async stop() {
      const closed = once(server, "close");
      server.close();
      await service.stop(() => {
        upgrades.stop();
        server.closeAllConnections();
      });
      await closed;
    },
  };
}

/** The front handles requests for deployments without converting them to a `Request`. */
export function createHttpServer({ fetch, front }: ServerOptions, upgrades = new Upgrades(fetch)): Server {
  const listener = getRequestListener(
    async (request, { outgoing }) =>
      (await answer(request, outgoing as ServerResponse, fetch)) ?? RESPONSE_ALREADY_SENT,
  );
  const options = {
    // Some methods of the clients send up to 1,000 ids in the query: 49 kB.
    maxHeaderSize: 64 * 1024,
    headersTimeout: 15_000,
    requestTimeout: 300_000,
    // Longer than the usual 60 s of load balancers, so that they close idle connections first: a request that arrives while the server
    // closes its connection fails.
    keepAliveTimeout: 75_000,
    // Other upgrade requests are handled as normal requests. Node.js before 22.21 ignores this option: they then get the response to a
    // request without a body.
    shouldUpgradeCallback: (request: IncomingMessage) => front?.mayUpgrade(request) || opensOwn(request),
  };
  const server = front
    ? createServer(options, (request, response) =>
        front.handle(request, response, () => void listener(request, response)),
      )
    : createServer(options, listener);
  return server.on("upgrade", (request, socket, head) => {
    if (front && (front.mayUpgrade(request) || !opensOwn(request))) front.upgrade(request, socket, head);
    else void upgrades.handle(request, socket as Socket, head).catch(() => socket.destroy());
  });
}

/** Whether a request opens a WebSocket of the thread protocol or of a listener. */
const opensOwn = (request: IncomingMessage): boolean =>
  isWebSocket(request) &&
  /\/(threads\/[^/?]+\/stream\/events|v2\/listeners\/[^/?]+\/connect)(\?|$)/.test(request.url ?? "");

function urlOf(config: Config, server: Server): string {
  const { port } = server.address() as AddressInfo;
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  return `http://${host}:${port}${config.mount_prefix}`;
}

type Fetch = (request: Request, bindings: Env["Bindings"]) => Response | Promise<Response>;

/** Maximum size of a message from a client, the same as the default limit of request bodies. */
const MAX_MESSAGE_BYTES = 20 * 1024 * 1024;

const isWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === "websocket";

/** Answers requests for WebSockets with the routes of the app, so that all guards of a request apply. */
class Upgrades {
  readonly #fetch: Fetch;
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES });

  constructor(fetch: Fetch) {
    this.#fetch = fetch;
  }

  async handle(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    // Node removes its own error listener before it emits `upgrade`; without a listener, a socket error would end the process.
    socket.on("error", () => undefined);
    let serve: Parameters<AcceptSocket>[0] | undefined;
    const accept: AcceptSocket = (given) => {
      serve = given;
    };
    const given = toRequest(request);
    const response = given ? await this.#fetch(given, { accept }) : invalidRequest();
    if (serve) return this.#server.handleUpgrade(request, socket, head, (accepted) => serve?.(accepted, socket));
    socket.end(await textOf(response));
    // Otherwise it would stay open, without a timeout, until the client closes it.
    socket.destroySoon();
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

/** Returns undefined if the host and the URL are no valid URL together, or if the method is one that fetch() does not allow. */
function toRequest({ method = "GET", url = "/", rawHeaders, headers }: IncomingMessage): Request | undefined {
  try {
    const given = new Headers();
    for (let i = 0; i < rawHeaders.length; i += 2) given.append(rawHeaders[i] as string, rawHeaders[i + 1] as string);
    return new Request(new URL(url, `http://${headers.host ?? "localhost"}`), { method, headers: given });
  } catch {
    return undefined;
  }
}

const invalidRequest = (): Response =>
  Response.json({ detail: "The method, the URL or the Host header of the request is not valid." }, { status: 400 });

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
