import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface BreakingProxy {
  /** Where clients find the service through the proxy. */
  url: string;
  /** How often it has broken a connection. */
  broken(): number;
  close(): Promise<void>;
}

/** A way to a service that breaks once: right after it has passed on the first answer that contains `marker`, up to there. */
export async function openBreakingProxy(service: string, marker: string): Promise<BreakingProxy> {
  const { hostname, port, pathname } = new URL(service);
  const sockets = new Set<Socket>();
  let broken = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    // A side that is gone takes the other one with it.
    for (const [side, other] of [[client, upstream] as const, [upstream, client] as const]) {
      sockets.add(side);
      side.on("error", () => undefined).on("close", () => other.destroy());
    }
    client.pipe(upstream);
    let seen = "";
    upstream.on("data", (chunk) => {
      seen = seen.slice(-marker.length) + chunk.toString("latin1");
      const at = seen.indexOf(marker);
      if (at < 0 || broken > 0) return client.write(chunk);
      broken++;
      const surplus = seen.length - (at + marker.length);
      client.end(chunk.subarray(0, chunk.length - surplus));
      upstream.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname === "/" ? "" : pathname}`,
    broken: () => broken,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
