import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A Unix socket in front of another, with everything that clients have sent through it. */
export interface RecordedSocket {
  socket: string;
  /** Method and URL of each request. */
  requests(): string[];
  sent(): string;
  stop(): Promise<void>;
}

export async function recordSocket(target: string): Promise<RecordedSocket> {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-recorded-"));
  const socket = join(folder, "recorded.sock");
  const connections = new Map<Socket, Buffer[]>();
  const server = createServer((client) => {
    const chunks: Buffer[] = [];
    connections.set(client, chunks);
    const behind = connect(target);
    client.on("data", (chunk) => chunks.push(chunk));
    client.pipe(behind).pipe(client);
    for (const [one, other] of [
      [client, behind],
      [behind, client],
    ] as const)
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
  }).listen(socket);
  await once(server, "listening");
  const sent = () => [...connections.values()].map((chunks) => Buffer.concat(chunks).toString("utf8")).join("\n");
  return {
    socket,
    sent,
    requests: () =>
      [...sent().matchAll(/(GET|HEAD|POST|PUT|DELETE) (\/\S*) HTTP\/1\.1\r\n/g)].map(
        ([, method, url]) => `${method} ${url}`,
      ),
    async stop() {
      for (const client of connections.keys()) client.destroy();
      const closed = once(server, "close");
      server.close();
      await closed;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
