import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Config } from "../../config/config.ts";
import { createHttpServer, type ServerOptions } from "../server.ts";

/** The service on its address. */
export interface Listening {
  url: string;
  /** Takes no more requests, stops the service, then drops the connections that are left. */
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

function urlOf(config: Config, server: Server): string {
  const { port } = server.address() as AddressInfo;
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;
  return `http://${host}:${port}${config.mount_prefix}`;
}
