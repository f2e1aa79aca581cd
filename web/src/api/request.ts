import { credentials, refuse } from "./credentials.ts";

/** The path of the web app with a trailing slash. The server writes it into this element, including a mount prefix. */
export const APP_PATH = document.querySelector<HTMLMetaElement>("meta[name=threadmill-path]")?.content ?? "/app/";

/** The path of the API without a trailing slash; empty at the root of the host. */
export const API_PATH = APP_PATH.replace(/\/app\/$/, "");

export const API_URL = `${location.origin}${API_PATH}`;

/** A validation error: `loc` is a path such as `["body", "results", 3, "start_time"]`. */
export interface ValidationIssue {
  loc?: (string | number)[];
  msg?: string;
  input?: unknown;
}

/** A response that is not 2xx, or no response (status 0). The message is the `detail` of the server. */
export class RequestError extends Error {
  readonly status: number;
  /** The validation errors; empty for other errors. */
  readonly issues: readonly ValidationIssue[];
  constructor(status: number, detail: string, issues: readonly ValidationIssue[] = []) {
    super(detail);
    this.status = status;
    this.issues = issues;
  }
}

type QueryValue = string | number | boolean | null | undefined;

export interface RequestOptions {
  /** Undefined and null are omitted; lists become repeated parameters. */
  query?: Record<string, QueryValue | readonly QueryValue[]>;
  /** Sent as JSON, except FormData and Blob. */
  body?: unknown;
  headers?: Record<string, string>;
  /** Overrides the selected workspace; null for the default workspace of the key. */
  tenant_id?: string | null;
  signal?: AbortSignal;
}

/**
 * Sends a request with the stored credentials.
 *
 * @param path from the root of the API: `/threads/search`
 * @throws RequestError for responses that are not 2xx
 */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const sender = credentials();
  const { body, tenant_id = sender.tenant_id } = options;
  const isRaw = body instanceof FormData || body instanceof Blob;
  const response = await fetch(urlOf(path, options.query), {
    method,
    body: body === undefined ? undefined : isRaw ? body : JSON.stringify(body),
    headers: {
      ...headersOf(sender.key, tenant_id),
      ...(body !== undefined && !isRaw && JSON_BODY),
      ...options.headers,
    },
    signal: options.signal,
    credentials: "omit",
  }).catch((error: Error) => {
    if (error.name === "AbortError") throw error;
    throw new RequestError(0, NO_RESPONSE);
  });
  if (response.status === 401) refuse(sender);
  if (!response.ok) throw errorOf(response.status, response.statusText, await response.text().catch(() => ""));
  return response;
}

export interface UploadOptions {
  /** Called with the number of sent bytes. */
  onProgress(sent_bytes: number): void;
  signal: AbortSignal;
}

/**
 * Sends a JSON file with the stored credentials and reports the progress.
 *
 * @throws RequestError like {@link send}, or the reason of the signal after an abort
 */
export async function sendFile<T>(path: string, file: Blob, options: UploadOptions): Promise<T> {
  const sender = credentials();
  const headers = { ...headersOf(sender.key, sender.tenant_id), ...JSON_BODY };
  try {
    return JSON.parse(await upload("POST", urlOf(path), headers, file, options)) as T;
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) refuse(sender);
    throw error;
  }
}

/** Uploads a body with XMLHttpRequest, because fetch does not report the progress. @returns the text of the response */
export function upload(
  method: "POST" | "PUT",
  url: string,
  headers: Record<string, string>,
  body: Blob,
  { onProgress, signal }: UploadOptions,
): Promise<string> {
  const request = new XMLHttpRequest();
  request.open(method, url);
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  request.upload.onprogress = ({ loaded }) => onProgress(loaded);
  return new Promise((resolve, reject) => {
    request.onload = () => {
      const { status, statusText, responseText } = request;
      if (status >= 200 && status < 300) resolve(responseText);
      else reject(errorOf(status, statusText, responseText));
    };
    request.onerror = () => reject(new RequestError(0, NO_RESPONSE));
    request.onabort = () => reject(signal.reason);
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(body);
  });
}

const NO_RESPONSE = "The server does not respond. Check that the server is running, then try again.";

/** Sends a request and parses the JSON response. Returns undefined for an empty body. */
async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
  const text = await (await send(method, path, options)).text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** The HTTP methods. `T` is the type of the response, usually from a `contract` folder in src/. */
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

function urlOf(path: string, query: RequestOptions["query"] = {}): string {
  const search = new URLSearchParams();
  for (const [name, given] of Object.entries(query))
    for (const value of [given].flat()) if (value !== undefined && value !== null) search.append(name, String(value));
  const text = search.toString();
  return `${API_PATH}${path}${text && `?${text}`}`;
}

/** `detail` is a message or a list of validation errors. */
function errorOf(status: number, statusText: string, text: string): RequestError {
  const body = parsed(text) as { detail?: unknown; error?: unknown; message?: unknown } | null | undefined;
  const detail = body?.detail ?? body?.error ?? body?.message;
  if (typeof detail === "string") return new RequestError(status, detail);
  if (!Array.isArray(detail))
    return new RequestError(status, `The request failed with HTTP status ${status} ${statusText}`);
  const issues = detail as ValidationIssue[];
  const sentences = issues.map(
    ({ loc = [], msg = "" }) => `${loc.slice(1).join(".")}${loc.length > 1 ? ": " : ""}${msg}`,
  );
  return new RequestError(status, sentences.join("; "), issues);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
