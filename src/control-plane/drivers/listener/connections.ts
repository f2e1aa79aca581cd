import { EventEmitter, once } from "node:events";
import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createWebSocketStream, type WebSocket } from "ws";
import type { InstanceRef } from "../driver.ts";
import { closeWhenSilent, join, PATHS, socketFor, textOf, WINDOW_BYTES } from "./protocol.ts";

/** The listener is not connected to this process, or its connection ended during a request. */
export class ListenerUnavailableError extends Error {
  constructor(listener_id: string) {
    super(
      `The listener ${listener_id} is not connected: check that "threadmill listen" runs and can reach this service.`,
    );
  }
}

const CLOSE_MS = 1_000;

/** The connections of listeners to this process, at most one for each. */
export class ListenerConnections {
  readonly #sessions = new Map<string, ClientHttp2Session>();
  /** Emits the ID of each listener that has connected. */
  readonly #connected = new EventEmitter().setMaxListeners(0);

  /** Replaces an earlier connection of the listener. */
  accept(listener_id: string, socket: WebSocket): void {
    void this.#add(listener_id, socketFor(createWebSocketStream(socket))).catch(() => socket.terminate());
  }

  async #add(listener_id: string, opened: Promise<Socket>): Promise<void> {
    const connection = await opened;
    // Loading it takes 20 ms of the start of the service, most of which have no listener.
    const { connect } = await import("node:http2");
    const session = connect("http://listener", {
      createConnection: () => connection,
      settings: { enablePush: false, initialWindowSize: WINDOW_BYTES.stream },
    });
    session.once("connect", () => session.setLocalWindowSize(WINDOW_BYTES.connection));
    closeWhenSilent(session);
    session.once("close", () => {
      if (this.#sessions.get(listener_id) === session) this.#sessions.delete(listener_id);
    });
    this.close(listener_id);
    this.#sessions.set(listener_id, session);
    this.#connected.emit(listener_id);
  }

  /** Ends the connection of a listener, which connects again unless it was deleted. */
  close(listener_id: string): void {
    this.#sessions.get(listener_id)?.destroy();
    this.#sessions.delete(listener_id);
  }

  /** Ends all connections when their requests have ended, or after a second. */
  async closeAll(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    for (const session of sessions) {
      if (session.destroyed) continue;
      const late = setTimeout(() => session.destroy(), CLOSE_MS);
      session.close();
      await once(session, "close");
      clearTimeout(late);
    }
  }

  connected = (): string[] => [...this.#sessions.keys()];

  /** Resolves when the listener is connected, or when the signal is aborted. */
  async whenConnected(listener_id: string, signal: AbortSignal): Promise<void> {
    if (!this.#sessions.has(listener_id)) await once(this.#connected, listener_id, { signal }).catch(() => undefined);
  }

  /**
   * Sends a request. Resolves with its status and the stream of its body and its response.
   *
   * @throws ListenerUnavailableError
   */
  async open(
    listener_id: string,
    path: string,
    body?: { first: string } | { whole: string },
  ): Promise<{ status: number; stream: ClientHttp2Stream }> {
    const session = this.#sessions.get(listener_id);
    if (!session || session.destroyed || session.closed) throw new ListenerUnavailableError(listener_id);
    const stream = session.request({ ":method": "POST", ":path": path }, { endStream: false });
    if (body && "first" in body) stream.write(body.first);
    else if (body) stream.end(body.whole);
    return new Promise((resolve, reject) => {
      stream.once("response", ({ ":status": status = 0 }) => resolve({ status, stream }));
      // Without a listener, an error would end the process. "close" follows.
      stream.on("error", () => undefined);
      stream.once("close", () => reject(new ListenerUnavailableError(listener_id)));
    });
  }

  /**
   * Sends a request, and returns the text of its response.
   *
   * @throws ListenerUnavailableError
   */
  async send(listener_id: string, path: string, body: string): Promise<{ status: number; body: string }> {
    const { status, stream } = await this.open(listener_id, path, { whole: body });
    const answer = await textOf(stream);
    if (answer === undefined) throw new ListenerUnavailableError(listener_id);
    return { status, body: answer };
  }
}

/** Ports that Linux does not assign to outgoing connections. */
const FIRST_PORT = 20_000;
const PORTS = 10_000;

interface Tunnel {
  server: Server;
  sockets: Set<Socket>;
  address: string;
}

/**
 * Addresses on loopback for the instances of listeners, so that the router and the reconciler reach them like all others: each connection
 * continues through the connection of the listener.
 */
export class Tunnels {
  readonly #connections: ListenerConnections;
  readonly #tunnels = new Map<string, Promise<Tunnel>>();

  constructor(connections: ListenerConnections) {
    this.#connections = connections;
  }

  /** Returns the reference with the address of this process; without one if the instance has none yet. */
  async localOf(listener_id: string, ref: InstanceRef): Promise<InstanceRef> {
    if (ref.address === "") return ref;
    const { instance_id } = ref;
    const key = keyOf(listener_id, instance_id);
    const tunnel = this.#tunnels.get(key) ?? this.#start(listener_id, instance_id);
    this.#tunnels.set(key, tunnel);
    return { ...ref, address: (await tunnel).address };
  }

  close = (listener_id: string, instance_id: string): Promise<void> => this.#close(keyOf(listener_id, instance_id));

  closeAll = (): Promise<unknown> => Promise.all([...this.#tunnels.keys()].map((key) => this.#close(key)));

  async #close(key: string): Promise<void> {
    const tunnel = this.#tunnels.get(key);
    this.#tunnels.delete(key);
    if (!tunnel) return;
    const { server, sockets } = await tunnel;
    server.close();
    for (const socket of sockets) socket.destroy();
  }

  async #start(listener_id: string, instance_id: string): Promise<Tunnel> {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      socket.on("error", () => undefined);
      void this.#connect(listener_id, instance_id, socket).catch(() => socket.destroy());
    });
    // The same port after a restart of the service, unless another program has taken it meanwhile.
    const wanted = FIRST_PORT + (Number.parseInt(instance_id.slice(-8), 16) % PORTS);
    await listenOn(server, wanted).catch(() => listenOn(server, 0));
    server.unref();
    return { server, sockets, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  }

  async #connect(listener_id: string, instance_id: string, socket: Socket): Promise<void> {
    const { status, stream } = await this.#connections.open(listener_id, `${PATHS.connect}${instance_id}`);
    if (status !== 200 || socket.destroyed) {
      stream.destroy();
      socket.destroy();
      return;
    }
    join(socket, stream);
  }
}

/** Of both, because listeners choose the IDs that they list. */
const keyOf = (listener_id: string, instance_id: string): string => `${listener_id} ${instance_id}`;

async function listenOn(server: Server, port: number): Promise<void> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}
