import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer, type ServerType } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Config } from "../config.ts";
import { sendDirectly } from "../http/send-directly.ts";
import type { Threadmill } from "../main.ts";

/** The service on its address. */
export interface Listening {
  url: string;
  /** Takes no more requests, stops the service, then drops the connections that are left. */
  stop(): Promise<void>;
}

export async function listen(config: Config, service: Threadmill): Promise<Listening> {
  // A client may take its time with a large body, but not with its headers.
  const server = createAdaptorServer({
    fetch: async (request, { outgoing }) => {
      const response = await service.fetch(request);
      return sendDirectly(response, outgoing as ServerResponse) ? RESPONSE_ALREADY_SENT : response;
    },
    serverOptions: { headersTimeout: 15_000, requestTimeout: 300_000 },
  });
  if (config.listen_fd === undefined) server.listen(config.port, config.host);
  else server.listen({ fd: config.listen_fd });
  await once(server, "listening");
  return {
    url: urlOf(config, server),
    async stop() {
      const closed = once(server, "close");
      server.close();
      await service.stop();
      if ("closeAllConnections" in server) server.closeAllConnections();
      await closed;
    },
  };
}

function urlOf(config: Config, server: ServerType): string {
  const { port } = server.address() as AddressInfo;
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  return `http://${host}:${port}${config.mount_prefix}`;
}
