import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Config } from "../config/config.ts";
import type { Env } from "../platform/http/route.ts";
import { sendStreamedBody } from "../platform/http/streamed-body.ts";
import { isWebSocket, Upgrades } from "../platform/http/upgrades.ts";
import type { DeploymentFront } from "./deployment-front.ts";

export interface ServerOptions {
  fetch(request: Request, bindings?: Env["Bindings"]): Response | Promise<Response>;
  /** Undefined if the server does not forward requests to deployments. */
  front: DeploymentFront | undefined;
}

export interface Listening {
  url: string;
  /** Stops accepting connections, stops the service, then closes the remaining connections. */
  stop(): Promise<void>;
}

export async function listen(config: Config, service: ServerOptions & { stop(): Promise<void> }): Promise<Listening> {
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
      await service.stop();
      upgrades.stop();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The front handles requests for deployments without converting them to a `Request`. */
export function createHttpServer({ fetch, front }: ServerOptions, upgrades = new Upgrades(fetch)): Server {
  const answer = getRequestListener(async (request, { outgoing }) => {
    const response = await fetch(request);
    return sendStreamedBody(response, outgoing as ServerResponse) ? RESPONSE_ALREADY_SENT : response;
  });
  const options = {
    headersTimeout: 15_000,
    requestTimeout: 300_000,
    // Longer than the usual 60 s of load balancers, so that they close idle connections first: a request that arrives while the server
    // closes its connection fails.
    keepAliveTimeout: 75_000,
    // Other upgrade requests are handled as normal requests. Node.js before 22.21 ignores this option: they then get the response to a
    // request without a body.
    shouldUpgradeCallback: (request: IncomingMessage) => front?.mayUpgrade(request) || opensThread(request),
  };
  const server = front
    ? createServer(options, (request, response) =>
        front.handle(request, response, () => void answer(request, response)),
      )
    : createServer(options, answer);
  return server.on("upgrade", (request, socket, head) => {
    if (front && (front.mayUpgrade(request) || !opensThread(request))) front.upgrade(request, socket, head);
    else void upgrades.handle(request, socket, head);
  });
}

/** Whether a request opens a WebSocket of the thread protocol. */
const opensThread = (request: IncomingMessage): boolean =>
  isWebSocket(request) && /\/threads\/[^/?]+\/stream\/events(\?|$)/.test(request.url ?? "");

function urlOf(config: Config, server: Server): string {
  const { port } = server.address() as AddressInfo;
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  return `http://${host}:${port}${config.mount_prefix}`;
}
