import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A network between a service and its database, which can fail. */
export interface TcpProxy {
  /** The address of the database by way of the proxy. */
  url: string;
  /** Whether packets arrive; without that connections stay open and nothing comes through, also no news of their end. */
  carries(does: boolean): void;
  /** Called with each packet for the database; what it returns arrives instead. */
  change(by: (packet: Buffer) => Buffer): void;
  /** From now on each packet arrives later, and with a probability its connection ends instead. */
  degrade(to: { delay_ms: number; resets: number; random: () => number } | undefined): void;
  /** New connections go to another server. */
  leadTo(database_url: string): void;
  /** Ends all connections. */
  reset(): void;
  close(): Promise<void>;
}

export async function startProxy(database_url: string): Promise<TcpProxy> {
  let target = new URL(database_url);
  const pairs = new Set<[Socket, Socket]>();
  let carrying = true;
  let changed = (packet: Buffer) => packet;
  let degraded: Parameters<TcpProxy["degrade"]>[0];
  const server = createServer((near) => {
    const far = connect(Number(target.port || 5432), target.hostname);
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      const delayed: Buffer[] = [];
      from.on("error", () => undefined);
      from.on("data", (packet: Buffer) => {
        if (!carrying) return;
        const chunk = from === near ? changed(packet) : packet;
        if (degraded && degraded.random() < degraded.resets) for (const socket of pair) socket.resetAndDestroy();
        else if (!degraded && delayed.length === 0) to.write(chunk);
        else {
          delayed.push(chunk);
          // Each timer sends the oldest packet, because a connection delivers in order, also when the delay ends.
          setTimeout(() => to.write(delayed.shift() as Buffer), degraded?.delay_ms ?? 0);
        }
      });
      from.on("close", () => {
        if (!carrying) return;
        to.destroy();
        pairs.delete(pair);
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = new URL(database_url);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  const reset = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
    pairs.clear();
  };
  return {
    url: url.href,
    carries: (does) => {
      carrying = does;
    },
    change: (by) => {
      changed = by;
    },
    degrade: (to) => {
      degraded = to;
    },
    leadTo: (other) => {
      target = new URL(other);
    },
    reset,
    async close() {
      reset();
      server.close();
      await once(server, "close");
    },
  };
}
