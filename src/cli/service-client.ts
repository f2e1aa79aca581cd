import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { isObject, type JsonObject, jsonOrUndefined } from "../platform/lib/json/json.ts";
import { CommandError, type Target } from "./command.ts";

export interface Answer {
  status: number;
  text: string;
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** Storing a large upload can take minutes, during which the service sends no data. */
const IDLE_TIMEOUT_MS = 10 * 60_000;

/** @throws CommandError for a status other than 2xx, and for a response that is not JSON */
export const requestJson = async <T>(target: Target, method: Method, path: string, body?: JsonObject): Promise<T> =>
  jsonOf(target, await requestOk(target, method, path, body)) as T;

/** @throws CommandError for a status other than 2xx */
export async function requestOk(target: Target, method: Method, path: string, body?: JsonObject): Promise<Answer> {
  const answer = await request(target, method, path, body && [JSON.stringify(body)]);
  if (answer.status >= 300) throw new CommandError(describeFailure(target, answer));
  return answer;
}

/**
 * Sends a request. Stops sending the body when the service has answered.
 *
 * @throws CommandError when the service does not answer; any error that iterating over the body throws
 */
export async function request(
  { url, api_key }: Target,
  method: Method,
  path: string,
  body?: AsyncIterable<string> | Iterable<string>,
  content_type = "application/json",
): Promise<Answer> {
  const address = new URL(`${url}${path}`);
  const headers = {
    ...(body && { "content-type": content_type }),
    ...(api_key !== undefined && { "x-api-key": api_key }),
  };
  const outgoing = (address.protocol === "https:" ? https : http).request(address, { method, headers });
  const answered = answerTo(outgoing);
  let failure: { reason: unknown } | undefined;
  const source = async function* () {
    try {
      if (body) yield* body;
    } catch (reason) {
      failure = { reason };
      throw reason;
    }
  };
  // Errors are ignored here, because an error while sending also rejects `answered`.
  pipeline(Readable.from(source()), outgoing).catch(() => undefined);
  try {
    return await answered;
  } catch (error) {
    throw failure ? failure.reason : new CommandError(describeNoAnswer(url, error as NodeJS.ErrnoException));
  } finally {
    outgoing.destroy();
  }
}

function answerTo(request: http.ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let hasAnswered = false;
    request.on("response", (response) => {
      hasAnswered = true;
      const answer = (text: string) => resolve({ status: response.statusCode ?? 0, text });
      // A service that rejects an upload may close the connection before the response body has arrived. The status is then enough.
      readText(response).then(answer, (error) => (response.statusCode === 200 ? reject(error) : answer("")));
    });
    // Errors after the response are ignored: the service may close the connection while the body is still being sent.
    request.on("error", (error) => !hasAnswered && reject(error));
    request.setTimeout(IDLE_TIMEOUT_MS, () => request.destroy(new Error("no data for 10 minutes")));
  });
}

function describeNoAnswer(url: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === "ECONNREFUSED")
    return `Cannot connect to ${url}: connection refused. Start the service with "threadmill serve", or set its address with --url.`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `Cannot resolve the host name in ${url}: correct --url.`;
  if (code === "ECONNRESET" || code === "EPIPE")
    return `The service at ${url} closed the connection before it responded (${code}), so the result of the request is unknown. Check the service's log and try again.`;
  return `The service at ${url} did not respond: ${message || code}. Check --url and try again.`;
}

/** @throws CommandError when the body is not JSON, which means that the server is not Threadmill */
export function jsonOf({ url }: Target, { text }: Answer): unknown {
  const value = jsonOrUndefined(text);
  if (value !== undefined) return value;
  throw new CommandError(`The server at ${url} is not Threadmill: its response is not JSON. Correct --url.`);
}

/** Returns the `detail` of an error response; undefined if it is missing or not a string. */
export function detailOf({ text }: Answer): string | undefined {
  const body = jsonOrUndefined(text);
  return isObject(body) && typeof body.detail === "string" ? body.detail : undefined;
}

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
        ? `There is no Threadmill service at ${url} (${reason}). Correct --url.`
        : `Not found (${reason}).`;
    case 413:
      return `The upload exceeds the service's size limit (${reason}). Raise THREADMILL_MAX_UPLOAD on the service, or upload fewer rows.`;
    default:
      return answer.status >= 500
        ? `The service could not process the request (${reason}). Check the service's log and try again.`
        : `The service rejected the request (${reason}).`;
  }
}
