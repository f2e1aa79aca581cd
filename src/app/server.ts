import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Config } from "../config/config.ts";
import { sendStreamedBody } from "../platform/http/streamed-body.ts";
import type { DeploymentFront } from "./deployment-front.ts";

export interface ServerOptions {
  fetch(request: Request): Response | Promise<Response>;
  /** Undefined if the server does not forward requests to deployments. */
  front: DeploymentFront | undefined;
}

export interface Listening {
  url: string;
  /** Stops accepting connections, stops the service, then closes the remaining connections. */
  stop(): Promise<void>;
}

export async function listen(config: Config, service: ServerOptions & { stop(): Promise<void> }): Promise<Listening> {
  const server = createHttpServer(service);
  if (config.listen_fd === undefined) server.listen(config.port, config.host);
  else server.listen({ fd: config.listen_fd });
  await once(server, "listening");
  return {
    url: urlOf(config, server),
    async stop() {
      const closed = once(server, "close");
      server.close();
      await service.stop();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The front handles requests for deployments without converting them to a `Request`. */
export function createHttpServer({ fetch, front }: ServerOptions): Server {
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
    // Other upgrade requests are handled as normal requests. Node.js before 22.21 ignores this option; the front then rejects them.
    shouldUpgradeCallback: (request: IncomingMessage) => front?.mayUpgrade(request) ?? false,
  };
  if (!front) return createServer(options, answer);
  const server = createServer(options, (request, response) =>
    front.handle(request, response, () => void answer(request, response)),
  );
  return server.on("upgrade", (request, socket, head) => front.upgrade(request, socket, head));
}

function urlOf(config: Config, server: Server): string {
  const { port } = server.address() as AddressInfo;
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  return `http://${host}:${port}${config.mount_prefix}`;
}
