import { type IncomingMessage, request as send } from "node:http";
import type { Socket } from "node:net";
import { type Origin, requestHeaders, responseHeaders } from "./headers.ts";
import { type Failure, whenConnected } from "./relay.ts";
import type { Target } from "./routes.ts";

/** A WebSocket upgrade and its connection. */
export interface UpgradeCall {
  request: IncomingMessage;
  socket: Socket;
  /** Bytes that the client has already sent after the request. */
  head: Buffer;
  /** Path and query of the request to the instance, with a leading slash. */
  path: string;
  origin: Origin;
}

const UPGRADE = ["Connection", "Upgrade", "Upgrade", "websocket"];

/** Idle time before TCP keep-alive probes are sent. The probes detect that the peer has vanished. */
const KEEP_ALIVE_MS = 30_000;

/**
 * Forwards an upgrade to an instance, and connects client and instance if the instance accepts. Otherwise, its response is forwarded.
 * When one connection ends, the other connection is ended, too.
 *
 * @returns the failure; undefined if the instance has responded or the client has disconnected
 */
export function tunnel(call: UpgradeCall, target: Target): Promise<Failure | undefined> {
  const { request, socket, head, path, origin } = call;
  const { hostname, port } = target;
  const headers = [...requestHeaders(request, target, origin), ...UPGRADE];
  const sent = send({ agent: false, hostname, port, method: "GET", path, headers, setHost: false });
  const begin = (answer: IncomingMessage, connection: readonly string[]) =>
    socket.write(headOf(answer, [...responseHeaders(answer, target, origin), ...connection]));
  return new Promise((resolve) => {
    let [isJoined, isRefused] = [false, false];
    let wasSent = false;
    let failed: Error | undefined;
    const onClientClose = () => sent.destroy();
    socket.once("close", onClientClose);
    sent.once("upgrade", (answer, upstream, first) => {
      isJoined = true;
      socket.off("close", onClientClose);
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
      socket.off("close", onClientClose);
      if (isJoined) return;
      const isOver = isRefused || socket.destroyed;
      resolve(isOver ? undefined : { error: failed ?? new Error("closed"), wasSent, wasReused: false });
    });
    whenConnected(sent, () => {
      wasSent = true;
      sent.end();
    });
  });
}

function headOf({ statusCode, statusMessage }: IncomingMessage, headers: readonly string[]): string {
  let head = `HTTP/1.1 ${statusCode} ${statusMessage}\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${head}\r\n`;
}

/** When one connection ends, the other ends after its buffered bytes are sent; after an error, it ends immediately. */
function join(one: Socket, other: Socket, ended: () => void): void {
  let open = 2;
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.setKeepAlive(true, KEEP_ALIVE_MS);
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
