import { API_PATH } from "./base.ts";
import { credentials, refuse } from "./credentials.ts";

/** One of the things that are wrong with a request: `loc` is `["body", "results", 3, "start_time"]` or the like. */
export interface Reason {
  loc?: (string | number)[];
  msg?: string;
  input?: unknown;
}

/** An answer that is not 2xx, or none at all (status 0). The message is the server's `detail`, written for people. */
export class RequestError extends Error {
  readonly status: number;
  /** Where the server lists what is wrong; empty where it says it in a sentence. */
  readonly reasons: readonly Reason[];
  constructor(status: number, detail: string, reasons: readonly Reason[] = []) {
    super(detail);
    this.status = status;
    this.reasons = reasons;
  }
}

type QueryValue = string | number | boolean | null | undefined;

export interface RequestOptions {
  /** Undefined and null are left out; lists are repeated. */
  query?: Record<string, QueryValue | readonly QueryValue[]>;
  /** Sent as JSON. A FormData or Blob is sent as it is. */
  body?: unknown;
  headers?: Record<string, string>;
  /** Instead of the workspace that was chosen; null for the key's own. */
  tenant_id?: string | null;
  signal?: AbortSignal;
}

/**
 * Sends a request with the key and workspace of this browser.
 *
 * @param path from the root of the API: `/threads/search`
 * @throws RequestError for everything that is not 2xx
 */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const shown = credentials();
  const { body, tenant_id = shown.tenant_id } = options;
  const isRaw = body instanceof FormData || body instanceof Blob;
  const response = await fetch(addressOf(path, options.query), {
    method,
    body: body === undefined ? undefined : isRaw ? body : JSON.stringify(body),
    headers: { ...headersOf(shown.key, tenant_id), ...(body !== undefined && !isRaw && JSON_BODY), ...options.headers },
    signal: options.signal,
    credentials: "omit",
  }).catch((error: Error) => {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, NO_ANSWER);
  });
  if (response.status === 401) refuse(shown);
  if (!response.ok) throw errorOf(response.status, response.statusText, await response.text().catch(() => ""));
  return response;
}

/**
 * Sends a file as JSON, as it is on the disk, and tells how many bytes of it are sent, which fetch cannot.
 *
 * @param onProgress bytes sent so far
 * @throws RequestError as {@link send}, and a DOMException named AbortError once it is aborted
 */
export function sendFile<T>(
  path: string,
  file: Blob,
  { onProgress, signal }: { onProgress(sent_bytes: number): void; signal: AbortSignal },
): Promise<T> {
  const shown = credentials();
  const request = new XMLHttpRequest();
  request.open("POST", addressOf(path));
  for (const [name, value] of Object.entries({ ...headersOf(shown.key, shown.tenant_id), ...JSON_BODY }))
    request.setRequestHeader(name, value);
  request.upload.onprogress = ({ loaded }) => onProgress(loaded);
  return new Promise((resolve, reject) => {
    request.onload = () => {
      const { status, statusText, responseText } = request;
      if (status === 401) refuse(shown);
      if (status >= 200 && status < 300) resolve(JSON.parse(responseText) as T);
      else reject(errorOf(status, statusText, responseText));
    };
    request.onerror = () => reject(new RequestError(0, NO_ANSWER));
    request.onabort = () => reject(new DOMException("It was cancelled.", "AbortError"));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(file);
  });
}

const NO_ANSWER = "The server does not answer. Is it running?";

/** Sends a request and reads its JSON. An answer without a body is undefined. */
async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
  const text = await (await send(method, path, options)).text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** The APIs, typed by what the caller expects: a type of src/contract. */
export const api = {
  get: <T>(path: string, options?: RequestOptions) => json<T>("GET", path, options),
  post: <T>(path: string, body?: unknown, options?: RequestOptions) => json<T>("POST", path, { ...options, body }),
  put: <T>(path: string, body?: unknown, options?: RequestOptions) => json<T>("PUT", path, { ...options, body }),
  patch: <T>(path: string, body?: unknown, options?: RequestOptions) => json<T>("PATCH", path, { ...options, body }),
  delete: <T = void>(path: string, options?: RequestOptions) => json<T>("DELETE", path, options),
};

const JSON_BODY = { "content-type": "application/json" };

const headersOf = (key: string | undefined, tenant_id: string | null | undefined): Record<string, string> => ({
  accept: "application/json",
  ...(key && { "x-api-key": key }),
  ...(tenant_id && { "x-tenant-id": tenant_id }),
});

function addressOf(path: string, query: RequestOptions["query"] = {}): string {
  const search = new URLSearchParams();
  for (const [name, given] of Object.entries(query))
    for (const value of [given].flat()) if (value !== undefined && value !== null) search.append(name, String(value));
  const text = search.toString();
  return `${API_PATH}${path}${text && `?${text}`}`;
}

/** `detail` is a sentence, or a list of reasons with their places. */
function errorOf(status: number, statusText: string, text: string): RequestError {
  const body = parsed(text) as { detail?: unknown; error?: unknown; message?: unknown } | null | undefined;
  const detail = body?.detail ?? body?.error ?? body?.message;
  if (typeof detail === "string") return new RequestError(status, detail);
  if (!Array.isArray(detail)) return new RequestError(status, `The server answered ${status} ${statusText}.`);
  const reasons = detail as Reason[];
  const sentences = reasons.map(
    ({ loc = [], msg = "" }) => `${loc.slice(1).join(".")}${loc.length > 1 ? ": " : ""}${msg}`,
  );
  return new RequestError(status, sentences.join("; "), reasons);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
