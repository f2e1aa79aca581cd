import { Agent, type ClientRequest, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import type { Socket } from "node:net";
import { hasBody, type Origin, requestHeaders, responseHeaders } from "./headers.ts";
import type { Target } from "./routes.ts";

export interface Call {
  request: IncomingMessage;
  response: ServerResponse;
  /** Path and query of the request to the instance, with a leading slash. */
  path: string;
  origin: Origin;
}

/** An instance did not respond. No part of a response was sent to the client. */
export interface Failure {
  error: Error;
  /** Whether the instance may have received part of the request. */
  wasSent: boolean;
  /** Whether the connection was reused. The instance may have closed a reused connection while the request was sent. */
  wasReused: boolean;
}

/**
 * Idle connections are closed after this time, because Node.js servers close them after 5 s. A request sent at that moment would be lost.
 * Without a timeout, Node's agent also ignores the response header `Keep-Alive`, which can specify a shorter time.
 */
const IDLE_MS = 4_000;

/** Characters in a reason phrase that Node.js receives, but throws an error for when it has to send them. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** Time limit for connecting to an instance. */
const CONNECT_MS = 5_000;

/**
 * The connection pool for instances. Uses node:http: undici's `dispatch` takes 0.02 ms less for each request (0.09 instead of
 * 0.11), but it destroys the body of a failed request, which is the client's connection, so a 502 could not be sent.
 */
export const createAgent = (): Agent => new Agent({ keepAlive: true, maxFreeSockets: 256, timeout: IDLE_MS });

/**
 * Streams a request to an instance and its response to the client, with backpressure. Resolves when the exchange has ended. When
 * the client disconnects, the request is destroyed; when the instance fails during its response, the client's connection is
 * destroyed.
 *
 * @param agent false for a new connection
 * @returns the failure; undefined when a response has started or the client has disconnected
 */
export function relay(call: Call, target: Target, agent: Agent | false): Promise<Failure | undefined> {
  const { request, response } = call;
  const { hostname, port } = target;
  const headers = requestHeaders(request, target, call.origin);
  const sent = send({ agent, hostname, port, method: request.method, path: call.path, headers, setHost: false });
  const onClientClose = () => {
    if (!response.writableFinished) sent.destroy();
  };
  response.once("close", onClientClose);
  let wasSent = false;
  let failed: Error | undefined;
  whenConnected(sent, () => {
    wasSent = true;
    if (hasBody(request)) request.pipe(sent);
    else sent.end();
  });
  sent.once("response", (answer) => {
    // Node.js accepts such a status from an instance, but throws when it has to send it.
    if (Number(answer.statusCode) < 200) sent.destroy(new Error(`The instance sent the status ${answer.statusCode}.`));
    else pass(answer, call, target);
  });
  sent.on("error", (error) => {
    failed = error;
  });
  return new Promise((resolve) => {
    sent.once("close", () => {
      response.off("close", onClientClose);
      stopReading(request, sent);
      const isOver = response.headersSent || response.destroyed;
      resolve(isOver ? undefined : { error: failed ?? new Error("closed"), wasSent, wasReused: sent.reusedSocket });
    });
  });
}

/** Calls `ready` when the connection is open. The body is not read before that, because another instance may have to receive it. */
export function whenConnected(sent: ClientRequest, ready: () => void): void {
  sent.once("socket", (socket: Socket) => {
    if (!socket.connecting) return ready();
    const late = () => sent.destroy(new Error(`Could not connect to the instance within ${CONNECT_MS} ms.`));
    socket.setTimeout(CONNECT_MS, late);
    socket.once("connect", () => {
      socket.setTimeout(0, late);
      ready();
    });
  });
}

function pass(answer: IncomingMessage, { response, origin }: Call, target: Target): void {
  if (response.destroyed) return;
  const { statusCode = 502, statusMessage = "" } = answer;
  const reason = UNSENDABLE.test(statusMessage) ? "" : statusMessage;
  response.writeHead(statusCode, reason, responseHeaders(answer, target, origin));
  // The client must not mistake a broken response for a complete response.
  answer.once("error", () => response.destroy());
  answer.once("close", () => {
    if (!answer.complete) response.destroy();
  });
  answer.pipe(response);
  // Headers are sent together with body data from the same read. If there is no such data, headers are sent immediately.
  setImmediate(() => {
    if (!answer.readableDidRead && !response.writableEnded && !response.destroyed) response.flushHeaders();
  });
}

/** Reads and discards the rest of the request, so that the client reads the response. */
function stopReading(request: IncomingMessage, sent: ClientRequest): void {
  if (request.complete && request.readableEnded) return;
  request.unpipe(sent);
  if (request.readableDidRead) request.resume();
}
