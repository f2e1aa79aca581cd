import { createStore } from "../store.ts";
import { credentials, refuse } from "./credentials.ts";
import { target } from "./target.ts";

/** Path of the web app with a trailing slash, including a mount prefix. The server writes the path into this `meta` element. */
export const APP_PATH = document.querySelector<HTMLMetaElement>("meta[name=threadmill-path]")?.content ?? "/app/";

/** Whether this is a page that anyone with its link may read: it needs no key, and no other page is reachable from it. */
export const IS_PUBLIC_PAGE = location.pathname.startsWith(`${APP_PATH}public/`);

/** Path of the API without a trailing slash. Empty if the API is at the root of the host. */
export const API_PATH = APP_PATH.replace(/\/app\/$/, "");

export const API_URL = `${location.origin}${API_PATH}`;

/** Routes that the chosen deployment answers instead of this server. */
const AGENT_ROUTES = /^\/(assistants|threads|runs\/cancel)(\/|$)/;

const isOfTarget = (path: string, { own }: RequestOptions): boolean =>
  target() !== undefined && !own && AGENT_ROUTES.test(path);

/** URL of the agent server that the pages show, without a trailing slash. */
export const agentsUrl = (): string => `${API_URL}${target() === undefined ? "" : `/deployments/${target()}`}`;

/** A validation error of the server. `loc` is a path such as `["body", "results", 3, "start_time"]`. */
export interface ValidationIssue {
  loc?: (string | number)[];
  msg?: string;
  input?: unknown;
}

/** Whether the last request had no response, and the time of the last response. */
export const connection = createStore<{ isLost: boolean; last_response_ms: number }>({
  isLost: false,
  last_response_ms: Date.now(),
});

function noteConnection(isLost: boolean): void {
  const before = connection.get();
  if (isLost === before.isLost && !isLost) before.last_response_ms = Date.now();
  else connection.set({ isLost, last_response_ms: isLost ? before.last_response_ms : Date.now() });
}

/** Error for a response that is not 2xx, or for a missing response (status 0). The message comes from the response, if it has one. */
export class RequestError extends Error {
  readonly status: number;
  /** Validation errors of a 422 response. Empty for other errors. */
  readonly issues: readonly ValidationIssue[];
  constructor(status: number, detail: string, issues: readonly ValidationIssue[] = []) {
    super(detail);
    this.status = status;
    this.issues = issues;
  }
}

type QueryValue = string | number | boolean | null | undefined;

export interface RequestOptions {
  /** Query parameters. Undefined and null values are omitted. Lists become repeated parameters. */
  query?: Record<string, QueryValue | readonly QueryValue[]>;
  /** Request body. FormData and Blob are sent unchanged, other values as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  /** Workspace ID that replaces the selected workspace. Null selects the key's default workspace. */
  tenant_id?: string | null;
  signal?: AbortSignal;
  /** Whether this server answers, even while the pages show the agents of a deployment. */
  own?: boolean;
}

/**
 * Sends a request with the stored credentials.
 *
 * @param path relative to the API's root, for example `/threads/search`
 * @throws RequestError if the response is not 2xx or is missing; AbortError if the signal aborts
 */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const sender = credentials();
  const { body, tenant_id = sender.tenant_id } = options;
  const isRaw = body instanceof FormData || body instanceof Blob;
  const response = await fetch(urlOf(path, options), {
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
    noteConnection(true);
    throw new RequestError(0, NO_RESPONSE);
  });
  noteConnection(false);
  // A deployment can reject users that this server knows.
  if (response.status === 401 && !isOfTarget(path, options)) refuse(sender);
  if (!response.ok) throw errorOf(response.status, response.statusText, await response.text().catch(() => ""));
  return response;
}

export interface UploadOptions extends Pick<RequestOptions, "tenant_id"> {
  /** Called with the number of bytes sent so far. */
  onProgress(sent_bytes: number): void;
  signal: AbortSignal;
}

/**
 * Uploads a JSON file with the stored credentials and reports the progress.
 *
 * @throws RequestError like {@link send}; after an abort, the signal's reason
 */
export async function sendFile<T>(path: string, file: Blob, options: UploadOptions): Promise<T> {
  const sender = credentials();
  const { tenant_id = sender.tenant_id } = options;
  const headers = { ...headersOf(sender.key, tenant_id), ...JSON_BODY };
  try {
    return JSON.parse(await upload("POST", urlOf(path), headers, file, options)) as T;
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) refuse(sender);
    throw error;
  }
}

/** Uploads a body with XMLHttpRequest, because fetch does not report upload progress. @returns the response body as text */
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

const NO_RESPONSE = "The server is not responding. Check that the server is running, then try again.";

/** Sends a request and parses the JSON response. Returns undefined for an empty body. */
async function json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
  const text = await (await send(method, path, options)).text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Requests by HTTP method. `T` is the type of the response, usually declared in a `contract` folder of src/. */
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

function urlOf(path: string, options: RequestOptions = {}): string {
  const search = new URLSearchParams();
  for (const [name, given] of Object.entries(options.query ?? {}))
    for (const value of [given].flat()) if (value !== undefined && value !== null) search.append(name, String(value));
  const text = search.toString();
  return `${API_PATH}${isOfTarget(path, options) ? `/deployments/${target()}` : ""}${path}${text && `?${text}`}`;
}

/** Creates the error for a response with a message in `detail`, `error` or `message`, or with validation errors in `detail`. */
function errorOf(status: number, statusText: string, text: string): RequestError {
  const body = parsed(text) as { detail?: unknown; error?: unknown; message?: unknown } | null | undefined;
  const detail = body?.detail ?? body?.error ?? body?.message;
  if (typeof detail === "string") {
    const [, field, problem] = /^path\.(\w+): (.+)$/s.exec(detail) ?? [];
    return new RequestError(status, field ? invalidId(field, problem as string) : detail);
  }
  if (!Array.isArray(detail))
    return new RequestError(
      status,
      `The request failed with HTTP status ${[status, statusText].filter(Boolean).join(" ")}.`,
    );
  const issues = detail as ValidationIssue[];
  const ofPath = issues.find(({ loc }) => loc?.[0] === "path");
  if (ofPath) return new RequestError(status, invalidId(String(ofPath.loc?.[1]), ofPath.msg ?? "is invalid"), issues);
  const sentences = issues.map(
    ({ loc = [], msg = "" }) => `${loc.slice(1).join(".")}${loc.length > 1 ? ": " : ""}${msg}`,
  );
  return new RequestError(status, sentences.join("; "), issues);
}

/** Explains a rejected ID, which comes from the address of the page. */
const invalidId = (field: string, problem: string): string =>
  `The address of this page contains an invalid ID (${field}: ${problem.replace(/\.$/, "")}). Check the link, or open the item from its list.`;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
