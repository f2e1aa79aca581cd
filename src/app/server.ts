import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { sendDirectly } from "../platform/http/send-directly.ts";
import type { DeploymentFront } from "./deployment-front.ts";

export interface ServerOptions {
  fetch(request: Request): Response | Promise<Response>;
  /** Undefined for a server that has no deployments. */
  front: DeploymentFront | undefined;
}

/** The service on a socket. Requests for deployments never become a `Request`: they pass as Node has them. */
export function createHttpServer({ fetch, front }: ServerOptions): Server {
  const answer = getRequestListener(async (request, { outgoing }) => {
    const response = await fetch(request);
    return sendDirectly(response, outgoing as ServerResponse) ? RESPONSE_ALREADY_SENT : response;
  });
  const options = {
    // A client may take its time with a large body, but not with its headers.
    headersTimeout: 15_000,
    requestTimeout: 300_000,
    // Node's 5 s are met by clients whose machine is busy: they send on a connection that is being closed, and the request fails.
    // Load balancers keep theirs for 60 s; ours is longer, so that they are the ones who close.
    keepAliveTimeout: 75_000,
    // All others are answered as if they had not asked for an upgrade. Before Node 22.21 they are refused.
    shouldUpgradeCallback: (request: IncomingMessage) => front?.mayUpgrade(request) ?? false,
  };
  if (!front) return createServer(options, answer);
  const server = createServer(options, (request, response) =>
    front.handle(request, response, () => void answer(request, response)),
  );
  return server.on("upgrade", (request, socket, head) => front.upgrade(request, socket, head));
}
