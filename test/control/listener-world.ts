import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createWebSocketStream, WebSocket, WebSocketServer } from "ws";
import type { DeployDriver } from "../../src/control-plane/drivers/driver.ts";
import { ClusterDrivers } from "../../src/control-plane/drivers/listener/cluster-drivers.ts";
import { ListenerConnections } from "../../src/control-plane/drivers/listener/connections.ts";
import { ListenerDrivers } from "../../src/control-plane/drivers/listener/driver.ts";
import { serveControlPlane } from "../../src/control-plane/drivers/listener/server.ts";

/** Both ends of the connection of a listener, in this process. */
export interface ListenerWorld {
  listener_id: string;
  connections: ListenerConnections;
  driver: DeployDriver;
  /** Whether the listener still exists, and what the database has of it. */
  exists: boolean;
  instances: Set<string>;
  /** Connects a listener with these drivers, by namespace. Resolves when the control plane has the connection. */
  connect(drivers: ReadonlyMap<string, DeployDriver>): Promise<WebSocket>;
  /** As a restart of the service. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function openListenerWorld(): Promise<ListenerWorld> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const sockets = new WebSocketServer({ server });
  const { port } = server.address() as AddressInfo;
  const open = () => {
    const connections = new ListenerConnections();
    const drivers = new ListenerDrivers({
      connections,
      exists: async () => world.exists,
      instancesOf: async () => world.instances,
    });
    return { connections, drivers, driver: drivers.of(world.listener_id) };
  };
  const world = { listener_id: randomUUID(), exists: true, instances: new Set<string>() } as ListenerWorld;
  let { drivers, ...ends } = open();
  Object.assign(world, ends, {
    async connect(cluster: ReadonlyMap<string, DeployDriver>) {
      const accepted = once(sockets, "connection");
      const client = new WebSocket(`ws://127.0.0.1:${port}`);
      const [socket] = (await accepted) as [WebSocket];
      await once(client, "open");
      void serveControlPlane(createWebSocketStream(client), new ClusterDrivers(cluster));
      world.connections.accept(world.listener_id, socket);
      await world.connections.whenConnected(world.listener_id, AbortSignal.timeout(10_000));
      return client;
    },
    async restart() {
      await drivers.close();
      ({ drivers, ...ends } = open());
      Object.assign(world, ends);
    },
    async close() {
      await drivers.close();
      server.closeAllConnections();
      server.close();
    },
  });
  return world;
}
