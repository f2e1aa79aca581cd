import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { Upstream } from "../../../src/control-plane/router/router.ts";
import { newId } from "../../../src/platform/lib/ids.ts";

/** A request as an instance got it. */
export interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  rawHeaders: string[];
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** A server on a port of its own, in the place of a deployment's agent server. It answers with its name unless told otherwise. */
export class Instance {
  readonly name: string;
  readonly server: Server;
  readonly upstream: Upstream;
  readonly seen: Seen[] = [];
  /** Connections that were made to it. */
  connections = 0;
  readonly #events = new EventEmitter();

  private constructor(name: string, server: Server, upstream: Upstream) {
    this.name = name;
    this.server = server;
    this.upstream = upstream;
    server.on("connection", () => {
      this.connections += 1;
    });
  }

  static async start(
    name = "instance",
    handler: Handler = (request, response) => {
      request.resume();
      request.once("end", () => response.end(name));
    },
    onUpgrade?: UpgradeHandler,
  ): Promise<Instance> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const api_key = `instance-${randomBytes(16).toString("hex")}`;
    const instance = new Instance(name, server, {
      instance_id: newId(),
      address: `http://127.0.0.1:${port}`,
      api_key,
    });
    server.on("request", (request, response) => {
      instance.#see(request);
      handler(request, response);
    });
    if (onUpgrade)
      server.on("upgrade", (request, socket, head) => {
        instance.#see(request);
        // As WebSocket libraries do.
        socket.on("end", () => socket.end());
        onUpgrade(request, socket, head);
      });
    return instance;
  }

  /** Resolves with its next request. */
  async next(): Promise<Seen> {
    const [seen] = await once(this.#events, "seen");
    return seen as Seen;
  }

  get last(): Seen {
    const seen = this.seen.at(-1);
    if (!seen) throw new Error(`The instance ${this.name} got no request.`);
    return seen;
  }

  async stop(): Promise<void> {
    const closed = once(this.server, "close");
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  #see({ method = "", url = "", headers, rawHeaders }: IncomingMessage): void {
    const seen = { method, url, headers, rawHeaders };
    this.seen.push(seen);
    this.#events.emit("seen", seen);
  }
}

/** An instance that accepts no connection. */
export const unreachable = (): Upstream => ({ instance_id: newId(), address: "http://127.0.0.1:1", api_key: "key" });
