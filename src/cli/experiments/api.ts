import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { CommandError } from "./command-error.ts";

/** A service, and who asks it. */
export interface Target {
  /** Without a slash at its end. */
  url: string;
  api_key?: string;
}

export interface Answer {
  status: number;
  text: string;
}

/** Storing a large upload may take minutes, in which nothing is sent. A connection that is silent for longer is given up. */
const SILENCE_MS = 10 * 60_000;

/** Sends one request to `/api/v1{path}`: the experiments API. */
export const ask = (
  target: Target,
  method: "GET" | "POST",
  path: string,
  body?: AsyncIterable<string>,
): Promise<Answer> => send(target, method, `/api/v1${path}`, body);

/** Sends one request to the agent server of the same service. */
export const askAgents = (target: Target, method: "GET" | "POST", path: string, body: JsonObject): Promise<Answer> =>
  send(target, method, path, only(JSON.stringify(body)));

/**
 * A request to the control plane of the same service.
 *
 * @returns its JSON; undefined for an answer without a body
 * @throws CommandError for anything but a 2xx
 */
export async function askControl(
  target: Target,
  method: "GET" | "POST" | "PATCH" | "DELETE",
  path: string,
  body?: JsonObject,
): Promise<unknown> {
  const answer = await send(target, method, path, body && only(JSON.stringify(body)));
  if (answer.status >= 300) throw new CommandError(refusal(target, answer));
  return answer.text === "" ? undefined : jsonOf(target, answer);
}

/**
 * Sends one request. A body in parts is sent as they come, no faster than the service takes it, and no
 * further once the service has answered. Whatever the parts throw is thrown here.
 *
 * @throws CommandError when no answer comes
 */
async function send(
  { url, api_key }: Target,
  method: "GET" | "POST" | "PATCH" | "DELETE",
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
  // When sending fails, so does the request: `answered` tells.
  pipeline(Readable.from(source()), request).catch(() => undefined);
  try {
    return await answered;
  } catch (error) {
    throw failure ? failure.reason : new CommandError(noAnswer(url, error as NodeJS.ErrnoException));
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
      // A service that refuses an upload may hang up before its reason has arrived; its status is an answer, too.
      readText(response).then(answer, (error) => (response.statusCode === 200 ? reject(error) : answer("")));
    });
    // A service that has answered may hang up while something is still being sent.
    request.on("error", (error) => !hasAnswered && reject(error));
    request.setTimeout(SILENCE_MS, () => request.destroy(new Error("it was silent for ten minutes")));
  });
}

function noAnswer(url: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === "ECONNREFUSED")
    return `Nothing answers at ${url}. Start the service there with "threadmill serve", or say where it is with --url.`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `There is no host of the name in ${url}: correct --url.`;
  if (code === "ECONNRESET" || code === "EPIPE")
    return `The service at ${url} hung up before it had answered (${code}), so nothing was stored. Its log may say why; try again.`;
  return `The service at ${url} gave no answer: ${message || code}. Check --url, and try again.`;
}

/** A request for JSON. @throws CommandError for anything but a 200 with JSON */
export async function askJson(
  target: Target,
  method: "GET" | "POST",
  path: string,
  body?: JsonObject,
): Promise<unknown> {
  const answer = await ask(target, method, path, body && only(JSON.stringify(body)));
  if (answer.status === 200) return jsonOf(target, answer);
  throw new CommandError(refusal(target, answer));
}

async function* only(text: string): AsyncGenerator<string> {
  yield text;
}

/** @throws CommandError when the body is no JSON: then it is not this service that answers */
export function jsonOf({ url }: Target, { text }: Answer): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandError(`What answers at ${url} is not Threadmill: its answer is no JSON. Correct --url.`);
  }
}

/** The one sentence of an error, as the service has it; undefined when it is a list of reasons, or another's. */
export function detailOf({ text }: Answer): string | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) && typeof body.detail === "string" ? body.detail : undefined;
  } catch {
    return undefined;
  }
}

/** What an error means, and what to do about it. */
export function refusal({ url, api_key }: Target, answer: Answer): string {
  const detail = detailOf(answer);
  const said = detail === undefined ? `status ${answer.status}` : `${answer.status}: ${detail}`;
  switch (answer.status) {
    case 401:
      return api_key === undefined
        ? `The service wants an API key (${said}). Give it with --api-key, or in THREADMILL_API_KEY.`
        : `The service does not accept this API key (${said}). Check --api-key or THREADMILL_API_KEY.`;
    case 404:
      return detail === undefined
        ? `There is no such service at ${url} (${said}). Correct --url.`
        : `Not found (${said}).`;
    case 413:
      return `The service does not take so much at once (${said}). Raise THREADMILL_MAX_UPLOAD_BYTES there, or upload less.`;
    default:
      return answer.status >= 500
        ? `The service failed (${said}). Its log says why; try again.`
        : `The service refused this (${said}).`;
  }
}
