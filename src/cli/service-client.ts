import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { isObject, type JsonObject } from "../platform/lib/json/json.ts";
import { CommandError, type Target } from "./command.ts";

export interface Answer {
  status: number;
  text: string;
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** The service may take minutes to store a large upload and sends nothing meanwhile. A longer silence ends the request. */
const IDLE_TIMEOUT_MS = 10 * 60_000;

/** Sends a request to `/api/v1{path}`, the experiments API. */
export const requestExperiments = (
  target: Target,
  method: "GET" | "POST",
  path: string,
  body?: AsyncIterable<string>,
): Promise<Answer> => send(target, method, `/api/v1${path}`, body);

/** Sends a request to the agent server. */
export const requestAgents = (
  target: Target,
  method: "GET" | "POST",
  path: string,
  body: JsonObject,
): Promise<Answer> => send(target, method, path, textOnce(JSON.stringify(body)));

/**
 * Sends a request to the control plane.
 *
 * @returns the JSON of the response; undefined for a response without a body
 * @throws CommandError for any status but 2xx
 */
export async function requestControlPlane(
  target: Target,
  method: Method,
  path: string,
  body?: JsonObject,
): Promise<unknown> {
  const answer = await send(target, method, path, body && textOnce(JSON.stringify(body)));
  if (answer.status >= 300) throw new CommandError(describeFailure(target, answer));
  return answer.text === "" ? undefined : jsonOf(target, answer);
}

/**
 * Sends a request to the experiments API.
 *
 * @returns the JSON of the response
 * @throws CommandError for any status but 200
 */
export async function requestExperimentsJson(
  target: Target,
  method: "GET" | "POST",
  path: string,
  body?: JsonObject,
): Promise<unknown> {
  const answer = await requestExperiments(target, method, path, body && textOnce(JSON.stringify(body)));
  if (answer.status === 200) return jsonOf(target, answer);
  throw new CommandError(describeFailure(target, answer));
}

/**
 * Sends a request. The chunks of the body are sent as the service accepts them, and no further once the service has answered. An
 * error that the body throws is thrown here.
 *
 * @throws CommandError when the service does not answer
 */
async function send(
  { url, api_key }: Target,
  method: Method,
  path: string,
  body?: AsyncIterable<string>,
): Promise<Answer> {
  const address = new URL(`${url}${path}`);
  const headers = {
    ...(body && { "content-type": "application/json" }),
    ...(api_key !== undefined && { "x-api-key": api_key }),
  };
  const request = (address.protocol === "https:" ? https : http).request(address, { method, headers });
  const answered = answerTo(request);
  let failure: { reason: unknown } | undefined;
  const source = async function* () {
    try {
      if (body) yield* body;
    } catch (reason) {
      failure = { reason };
      throw reason;
    }
  };
  // A failure to send also fails the request, and `answered` rejects.
  pipeline(Readable.from(source()), request).catch(() => undefined);
  try {
    return await answered;
  } catch (error) {
    throw failure ? failure.reason : new CommandError(describeNoAnswer(url, error as NodeJS.ErrnoException));
  } finally {
    request.destroy();
  }
}

function answerTo(request: http.ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let hasAnswered = false;
    request.on("response", (response) => {
      hasAnswered = true;
      const answer = (text: string) => resolve({ status: response.statusCode ?? 0, text });
      // A service that rejects an upload may close the connection before its reason has arrived; the status is an answer, too.
      readText(response).then(answer, (error) => (response.statusCode === 200 ? reject(error) : answer("")));
    });
    // A service that has answered may close the connection while the body is still being sent.
    request.on("error", (error) => !hasAnswered && reject(error));
    request.setTimeout(IDLE_TIMEOUT_MS, () => request.destroy(new Error("no data for 10 minutes")));
  });
}

function describeNoAnswer(url: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === "ECONNREFUSED")
    return `Cannot connect to ${url}: connection refused. Start the service with "threadmill serve", or set its address with --url.`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `Cannot resolve the host name in ${url}: correct --url.`;
  if (code === "ECONNRESET" || code === "EPIPE")
    return `The service at ${url} closed the connection before it answered (${code}), so nothing was stored. Check its log and try again.`;
  return `The service at ${url} did not answer: ${message || code}. Check --url and try again.`;
}

async function* textOnce(text: string): AsyncGenerator<string> {
  yield text;
}

/** @throws CommandError when the body is not JSON: then the address belongs to another service */
export function jsonOf({ url }: Target, { text }: Answer): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandError(`The server at ${url} is not Threadmill: its response is not JSON. Correct --url.`);
  }
}

/** The `detail` of an error response when it is a string; undefined otherwise. */
export function detailOf({ text }: Answer): string | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) && typeof body.detail === "string" ? body.detail : undefined;
  } catch {
    return undefined;
  }
}

/** Says what an error response means and what to do. */
export function describeFailure({ url, api_key }: Target, answer: Answer): string {
  const detail = detailOf(answer);
  const reason = detail === undefined ? `status ${answer.status}` : `${answer.status}: ${detail}`;
  switch (answer.status) {
    case 401:
      return api_key === undefined
        ? `The service requires an API key (${reason}). Set --api-key or THREADMILL_API_KEY.`
        : `The service does not accept this API key (${reason}). Check --api-key or THREADMILL_API_KEY.`;
    case 404:
      return detail === undefined
        ? `There is no such service at ${url} (${reason}). Correct --url.`
        : `Not found (${reason}).`;
    case 413:
      return `The upload exceeds the limit of the service (${reason}). Raise THREADMILL_MAX_UPLOAD there, or upload less.`;
    default:
      return answer.status >= 500
        ? `The service failed (${reason}). Check its log and try again.`
        : `The service rejected the request (${reason}).`;
  }
}
