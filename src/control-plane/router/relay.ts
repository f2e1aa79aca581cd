import { Agent, type ClientRequest, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import type { Socket } from "node:net";
import { hasBody, type Origin, requestHeaders, responseHeaders } from "./headers.ts";
import type { Target } from "./routes.ts";

/** A request for a deployment, and the response that it waits for. */
export interface Call {
  request: IncomingMessage;
  response: ServerResponse;
  /** Path and query as the instance is asked for them; begins with a slash. */
  path: string;
  origin: Origin;
}

/** An instance did not answer: nothing of the response has been sent. */
export interface Failure {
  error: Error;
  /** Whether the instance may have got anything of the request. */
  wasSent: boolean;
  /** Whether that was over a connection that had been open before, which the instance may just have closed. */
  wasReused: boolean;
}

/**
 * Connections that nobody uses are closed after so long: servers on Node do so after 5 s, and a request that meets that on its way
 * is lost. Without it Node's agent does not look at the `Keep-Alive` of answers either, which can be shorter.
 */
const IDLE_MS = 4_000;

/** An instance that takes no connection for so long is not there. */
const CONNECT_MS = 5_000;

/**
 * Connections to instances, by their addresses. Node's own client: undici's `dispatch` took 0.02 ms less of a request (0.09
 * beside 0.11), but destroys the body of a request that fails, which is the client's connection, so that nobody could answer 502.
 */
export const createAgent = (): Agent => new Agent({ keepAlive: true, maxFreeSockets: 256, timeout: IDLE_MS });

/**
 * Passes a request on and its answer back, each as it comes; a slow reader slows its writer. Ends when the instance has nothing
 * to do with it any more. When the client goes away, the instance's side ends too; when the instance does in the middle of its
 * answer, the client sees its connection break.
 *
 * @param agent false for a connection of its own
 * @returns why it was not answered; undefined once an answer has begun, or when nobody waits for one any more
 */
export function relay(call: Call, target: Target, agent: Agent | false): Promise<Failure | undefined> {
  const { request, response } = call;
  const { hostname, port } = target;
  const headers = requestHeaders(request, target, call.origin);
  const sent = send({ agent, hostname, port, method: request.method, path: call.path, headers, setHost: false });
  const onGone = () => {
    if (!response.writableFinished) sent.destroy();
  };
  response.once("close", onGone);
  let wasSent = false;
  let failed: Error | undefined;
  whenConnected(sent, () => {
    wasSent = true;
    if (hasBody(request)) request.pipe(sent);
    else sent.end();
  });
  sent.once("response", (answer) => pass(answer, call, target));
  sent.on("error", (error) => {
    failed = error;
  });
  return new Promise((resolve) => {
    sent.once("close", () => {
      response.off("close", onGone);
      stopReading(request, sent);
      const isOver = response.headersSent || response.destroyed;
      resolve(isOver ? undefined : { error: failed ?? new Error("closed"), wasSent, wasReused: sent.reusedSocket });
    });
  });
}

/** Nothing of a body is read before there is somebody to read it: until then another instance can have it. */
function whenConnected(sent: ClientRequest, ready: () => void): void {
  sent.once("socket", (socket: Socket) => {
    if (!socket.connecting) return ready();
    const late = () => sent.destroy(new Error(`No connection within ${CONNECT_MS} ms.`));
    socket.setTimeout(CONNECT_MS, late);
    socket.once("connect", () => {
      socket.setTimeout(0, late);
      ready();
    });
  });
}

function pass(answer: IncomingMessage, { response, origin }: Call, target: Target): void {
  if (response.destroyed) return;
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, responseHeaders(answer, target, origin));
  // An answer that breaks must not look like one that has ended.
  answer.once("error", () => response.destroy());
  answer.once("close", () => {
    if (!answer.complete) response.destroy();
  });
  answer.pipe(response);
  // Headers travel with what the same read brought of the body. Where that is nothing, they do not wait for more.
  setImmediate(() => {
    if (!answer.readableDidRead && !response.writableEnded && !response.destroyed) response.flushHeaders();
  });
}

/** What the client still sends is read and forgotten, so that it can read its answer. */
function stopReading(request: IncomingMessage, sent: ClientRequest): void {
  if (request.complete && request.readableEnded) return;
  request.unpipe(sent);
  if (request.readableDidRead) request.resume();
}
