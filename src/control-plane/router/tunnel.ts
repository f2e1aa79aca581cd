import { type IncomingMessage, request as send } from "node:http";
import type { Socket } from "node:net";
import { type Origin, requestHeaders, responseHeaders } from "./headers.ts";
import type { Failure } from "./relay.ts";
import type { Target } from "./routes.ts";

/** A request that wants to become a WebSocket, and its connection. */
export interface UpgradeCall {
  request: IncomingMessage;
  socket: Socket;
  /** What the client has sent already of what comes after the request. */
  head: Buffer;
  /** Path and query as the instance is asked for them; begins with a slash. */
  path: string;
  origin: Origin;
}

const UPGRADE = ["Connection", "Upgrade", "Upgrade", "websocket"];

/** A connection over which nothing comes is probed, so that one whose other end has vanished ends some time. */
const PROBE_MS = 30_000;

/**
 * Asks an instance to upgrade, and joins the two connections when it does. An answer that refuses is passed on as it is. Ends
 * when both connections have ended; each takes the other along.
 *
 * @returns why it was not answered; undefined once an answer has begun, or when nobody waits for one any more
 */
export function tunnel(call: UpgradeCall, target: Target): Promise<Failure | undefined> {
  const { request, socket, head, path, origin } = call;
  const { hostname, port } = target;
  const headers = [...requestHeaders(request, target, origin), ...UPGRADE];
  // Its connection is never used for anything else.
  const sent = send({ agent: false, hostname, port, method: "GET", path, headers, setHost: false });
  const begin = (answer: IncomingMessage, connection: readonly string[]) =>
    socket.write(headOf(answer, [...responseHeaders(answer, target, origin), ...connection]));
  return new Promise((resolve) => {
    let [isJoined, isRefused] = [false, false];
    let failed: Error | undefined;
    const onGone = () => sent.destroy();
    socket.once("close", onGone);
    sent.once("upgrade", (answer, upstream, first) => {
      isJoined = true;
      socket.off("close", onGone);
      begin(answer, UPGRADE);
      socket.write(first);
      upstream.write(head);
      join(socket, upstream, () => resolve(undefined));
    });
    sent.once("response", (answer) => {
      isRefused = true;
      begin(answer, ["Connection", "close"]);
      answer.once("error", () => socket.destroy());
      answer.pipe(socket);
    });
    sent.on("error", (error) => {
      failed = error;
    });
    sent.once("close", () => {
      socket.off("close", onGone);
      if (isJoined) return;
      const isOver = isRefused || socket.destroyed;
      const wasSent = sent.socket?.connecting === false;
      resolve(isOver ? undefined : { error: failed ?? new Error("closed"), wasSent, wasReused: false });
    });
    sent.end();
  });
}

function headOf({ statusCode, statusMessage }: IncomingMessage, headers: readonly string[]): string {
  let head = `HTTP/1.1 ${statusCode} ${statusMessage}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${head}\r\n`;
}

/** A WebSocket is over for both when one of the two has said its last: what has come by then still goes out. */
function join(one: Socket, other: Socket, ended: () => void): void {
  let open = 2;
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.setKeepAlive(true, PROBE_MS);
    from.on("error", () => to.destroy());
    from.once("end", () => to.destroySoon());
    from.once("close", () => {
      to.destroySoon();
      open -= 1;
      if (open === 0) ended();
    });
    from.pipe(to, { end: false });
  }
}
