import { once } from "node:events";
import { performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import { DeployError, type LogLine } from "../driver.ts";
import type { ClusterDrivers } from "./cluster-drivers.ts";
import {
  type Call,
  closeWhenSilent,
  type Failure,
  join,
  type Order,
  PATHS,
  type Report,
  socketFor,
  textOf,
  WINDOW_BYTES,
} from "./protocol.ts";

/** Serves the requests of the control plane on a connection. Resolves when the connection has ended. */
export async function serveControlPlane(connection: Duplex, drivers: ClusterDrivers): Promise<void> {
  const session: ServerHttp2Session = performServerHandshake(await socketFor(connection), {
    settings: { initialWindowSize: WINDOW_BYTES.stream },
  });
  session.setLocalWindowSize(WINDOW_BYTES.connection);
  closeWhenSilent(session);
  session.on("stream", (stream, { ":path": path = "" }) => {
    stream.on("error", () => undefined);
    void serve(stream, path, drivers).catch(() => stream.destroy());
  });
  if (!session.closed) await once(session, "close");
}

async function serve(stream: ServerHttp2Stream, path: string, drivers: ClusterDrivers): Promise<void> {
  if (path === PATHS.call) return answer(stream, drivers);
  if (path === PATHS.ensure) return ensure(stream, drivers);
  if (path.startsWith(PATHS.connect)) return connectTo(stream, path.slice(PATHS.connect.length), drivers);
  stream.respond({ ":status": 404 }, { endStream: true });
}

const failureOf = (error: unknown): Failure => ({
  message: (error as Error).message,
  is_permanent: error instanceof DeployError,
});

async function answer(stream: ServerHttp2Stream, drivers: ClusterDrivers): Promise<void> {
  const call = JSON.parse((await textOf(stream)) ?? "") as Call;
  let [status, body] = [200, ""];
  try {
    body = JSON.stringify((await drivers.call(call)) ?? "") ?? "";
  } catch (error) {
    const failure = failureOf(error);
    [status, body] = [failure.is_permanent ? 422 : 500, JSON.stringify(failure)];
  }
  stream.respond({ ":status": status, "content-type": "application/json" });
  stream.end(body);
}

async function ensure(stream: ServerHttp2Stream, drivers: ClusterDrivers): Promise<void> {
  const report = (entry: Report) => {
    if (stream.writable) stream.write(`${JSON.stringify(entry)}\n`);
  };
  const stored = new StoredLines(stream);
  const order = await stored.order;
  stream.respond({ ":status": 200 });
  try {
    const log = (line: LogLine) => report({ n: stored.next(), line });
    report({ ref: await drivers.ensure({ ...order, log, logsPersisted: () => stored.all() }) });
  } catch (error) {
    report({ failure: failureOf(error) });
    stream.end();
  }
}

/** Reads the body of `ensure`: the order, and then which lines of the log the control plane has stored. */
class StoredLines {
  readonly order: Promise<Order>;
  readonly #stream: ServerHttp2Stream;
  #sent = 0;
  #stored = 0;
  #waiting: (() => void)[] = [];

  constructor(stream: ServerHttp2Stream) {
    this.#stream = stream;
    const order = Promise.withResolvers<Order>();
    this.order = order.promise;
    let isFirst = true;
    createInterface({ input: stream }).on("line", (line) => {
      if (isFirst) order.resolve(JSON.parse(line) as Order);
      else this.#stored = Number(line);
      isFirst = false;
      this.#wake();
    });
    stream.once("end", () => stream.end());
    stream.once("close", () => {
      order.reject(new Error("The request has ended."));
      this.#wake();
    });
  }

  /** Returns the number of the next line. */
  next = (): number => ++this.#sent;

  /** Resolves when all lines so far are stored. Rejects if the request ends before that. */
  async all(): Promise<void> {
    const last = this.#sent;
    while (this.#stored < last) {
      if (this.#stream.destroyed) throw new Error("The connection to the control plane has ended.");
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/** Connects to an instance of this listener. Other addresses of the cluster cannot be reached. */
async function connectTo(stream: ServerHttp2Stream, instance_id: string, drivers: ClusterDrivers): Promise<void> {
  const address = await drivers.addressOf(instance_id);
  if (address === undefined) return stream.respond({ ":status": 404 }, { endStream: true });
  const { hostname, port } = new URL(address);
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port), allowHalfOpen: true });
  stream.once("close", () => socket.destroy());
  try {
    await once(socket, "connect");
  } catch {
    return stream.respond({ ":status": 502 }, { endStream: true });
  }
  if (stream.destroyed) return;
  stream.respond({ ":status": 200 });
  join(stream, socket);
}
