import { on, once } from "node:events";
import type { Http2Session, Http2Stream } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { z } from "zod";
import { LOG_LEVELS } from "../../contract/logs.ts";
import type { ImageSpec, InstanceRef, InstanceSpec, LogLine } from "../driver.ts";

/**
 * Requests of the control plane to a listener: HTTP/2 on the WebSocket that the listener has opened, on which the control plane is the
 * client. The listener only opens this connection and accepts none.
 */
export const PATHS = {
  /** One call of its driver. Body: {@link Call}. Status 200 with one of {@link RESULTS}, 422 or 500 with {@link Failure}. */
  call: "/call",
  /**
   * `ensure` of its driver, and the log of the instance as long as the request is open. The first line of the body is an {@link Order},
   * each further line the number of the last log line that the control plane has stored. Lines of the response: {@link Report}.
   */
  ensure: "/ensure",
  /** A connection to an instance, whose ID follows the path. Status 200 when it is open; body and response are its bytes. */
  connect: "/connect/",
} as const;

export type Order = Omit<InstanceSpec, "log" | "logsPersisted">;

const MAX_TEXT = 40_000;

const Ref = z.object({
  instance_id: z.string().max(100),
  deployment_id: z.string().max(100),
  revision_id: z.string().max(100),
  handle: z.string().max(1_000),
  address: z.string().max(1_000),
});

/** `is_permanent`: whether users can correct the cause (DeployError). */
export const Failure = z.object({ message: z.string().max(MAX_TEXT), is_permanent: z.boolean() });
export type Failure = z.output<typeof Failure>;

/** Responses are checked: the listener belongs to a workspace, but the service to all. */
export const Report = z.union([
  z.object({ ref: Ref }),
  z.object({
    n: z.int(),
    line: z.object({
      at: z.int(),
      level: z.enum(LOG_LEVELS),
      message: z.string().max(MAX_TEXT),
      run_id: z.string().max(100).optional(),
    }),
  }),
  z.object({ failure: Failure }),
]);
export type Report = { ref: InstanceRef } | { n: number; line: LogLine } | { failure: Failure };

export const RESULTS = {
  pin: z.string().max(1_000),
  probe: z.union([
    z.object({ state: z.literal("running") }),
    z.object({ state: z.literal("ended"), reason: z.string().max(MAX_TEXT) }),
  ]),
  stop: z.literal(""),
  list: z.array(Ref),
  remove: z.literal(""),
} as const;

export type Call =
  | { method: "pin"; image: ImageSpec }
  | { method: "probe"; ref: InstanceRef }
  | { method: "stop"; ref: InstanceRef; grace_ms: number }
  | { method: "list" }
  | { method: "remove"; deployment_id: string; artifacts: readonly string[] };

/** Memory for data that the other side has not read: of each request, and of the connection. */
export const WINDOW_BYTES = { stream: 2 ** 20, connection: 2 ** 24 };

/**
 * Returns a socket whose other end is `connection`. On streams that are no sockets, HTTP/2 of Node.js 24 ended the process with an internal
 * assertion (JSStreamSocket.doWrite) when such a connection broke.
 */
export async function socketFor(connection: Duplex): Promise<Socket> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = on(server, "connection") as AsyncIterable<[Socket]>;
  const outer = connect((server.address() as AddressInfo).port, "127.0.0.1");
  join(outer, connection);
  await once(outer, "connect");
  for await (const [inner] of accepted) {
    if (inner.remotePort === outer.localPort) {
      server.close();
      return inner;
    }
    // Of another program.
    inner.destroy();
  }
  throw new Error("The server has ended.");
}

/** Interval of pings, and the time limit for their answer. */
const PING_MS = 10_000;

/** Ends a connection when the peer does not answer a ping, for example because its machine has vanished. */
export function closeWhenSilent(session: Http2Session): void {
  let isAnswered = true;
  const timer = setInterval(() => {
    if (!isAnswered) return session.destroy();
    isAnswered = false;
    session.ping(() => {
      isAnswered = true;
    });
  }, PING_MS).unref();
  // The streams of the session fail, too, and report it.
  session.on("error", () => undefined);
  session.once("close", () => clearInterval(timer));
}

const MAX_BYTES = 4 * 2 ** 20;

/** Ends a stream whose lines are too long to be kept in memory. */
export function limitLines(stream: Http2Stream): void {
  let pending = 0;
  stream.on("data", (chunk: Buffer) => {
    const end = chunk.lastIndexOf("\n");
    pending = end < 0 ? pending + chunk.length : chunk.length - end;
    if (pending > MAX_BYTES) stream.destroy();
  });
}

/**
 * Reads a stream to its end; undefined if it ends before that, or is too long. Iterating over it fails: for Node.js, a stream of HTTP/2 whose last frame
 * has arrived is closed, even if nothing was read.
 */
export function textOf(stream: Http2Stream): Promise<string | undefined> {
  let text = "";
  stream.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
    if (text.length > MAX_BYTES) stream.destroy();
  });
  return new Promise((resolve) => {
    stream.once("end", () => resolve(text));
    stream.once("close", () => resolve(undefined));
  });
}

/** Connects two streams in both directions until both have ended, or one fails. */
export function join(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", () => to.destroy());
    from.once("close", () => {
      if (!from.readableEnded) to.destroy();
    });
    from.pipe(to);
  }
}
