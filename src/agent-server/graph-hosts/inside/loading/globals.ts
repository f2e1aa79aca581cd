import { AsyncLocalStorage } from "node:async_hooks";
import { unlessAborted } from "../../../../platform/lib/unless-aborted.ts";
import type { FetchAnswer, FetchRequest, LogLevel, RunOrder } from "../../host.ts";
import type { ServiceConnection } from "../connection.ts";
import { toWire } from "../wire.ts";

/** On whose behalf code of the project runs. */
export interface ProjectContext {
  connection: ServiceConnection;
  /** Absent while modules are loaded and questions are answered. */
  run?: { order: RunOrder; signal: AbortSignal };
}

/**
 * The client libraries look for their logger and their way to the server on `globalThis`, without an argument that could say which
 * run asks. Runs of one host share the thread, so the run is known by the asynchronous context alone.
 */
const current = new AsyncLocalStorage<ProjectContext>();

export const inContext = <T>(context: ProjectContext, work: () => T): T => current.run(context, work);

/** The methods of the client library's `Logger`, and the level of the service's log that each writes to. */
const LEVELS = {
  error: "error",
  warn: "warn",
  help: "info",
  data: "info",
  info: "info",
  prompt: "info",
  http: "info",
  input: "info",
  verbose: "debug",
  debug: "debug",
  silly: "debug",
} as const satisfies Record<string, LogLevel>;

/** `(message, ...meta)` or `({message, ...meta})`, as the client library declares it. Returns the logger. */
type LogMethod = (message: unknown, ...meta: unknown[]) => Logger;
type Logger = Record<keyof typeof LEVELS, LogMethod>;

const logger = Object.fromEntries(
  Object.entries(LEVELS).map(([method, level]): [string, LogMethod] => [
    method,
    (message, ...meta) => {
      writeLog(level, message, meta);
      return logger;
    },
  ]),
) as Logger;

function writeLog(level: LogLevel, said: unknown, meta: readonly unknown[]): void {
  const { connection, run } = current.getStore() ?? {};
  const { message, ...fields } = isRecord(said) ? said : { message: said };
  const all = Object.assign({}, fields, ...meta.map((part) => (isRecord(part) ? part : { meta: part })));
  const key = run && { run_id: run.order.run_id, epoch: run.order.epoch };
  connection?.post({ type: "log", run: key, level, message: textOf(message), fields: textOf(all) });
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Error);

/** JSON text, or the plain text of a string; what JSON cannot express must not fail the node that logs it. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return toWire(value);
  } catch {
    return JSON.stringify({ unserializable: String(value) });
  }
}

let lastFetch = 0;

/**
 * `fetch` to this server without a socket, as the caller of the run that asks. The paths are those of the agent server.
 *
 * @throws Error outside of a run; the reason of the run's or the request's signal
 */
async function fetchInProcess(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const { connection, run } = current.getStore() ?? {};
  if (!connection || !run)
    throw new Error("A client without a URL works in a run alone: give it the URL of the server elsewhere.");
  const request = new Request(input, init);
  const { pathname, search } = new URL(request.url);
  const id = ++lastFetch;
  const { order } = run;
  const signal = AbortSignal.any([run.signal, request.signal]);
  const cancel = () => void connection.request(order, { op: "fetch_cancel", id }).catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  const close = () => signal.removeEventListener("abort", cancel);
  const ask: FetchRequest = {
    op: "fetch",
    id,
    method: request.method,
    path: `${pathname}${search}`,
    headers: [...request.headers],
    body: request.body === null ? undefined : new Uint8Array(await request.arrayBuffer()),
  };
  const { status, headers, has_body } = (await unlessAborted(signal, connection.request(order, ask))) as FetchAnswer;
  if (!has_body) close();
  const read = async (controller: ReadableStreamDefaultController) => {
    const chunk = await unlessAborted(signal, connection.request(order, { op: "fetch_read", id }));
    if (chunk) return controller.enqueue(chunk);
    close();
    controller.close();
  };
  // Nothing is read ahead: a slow reader costs no memory here.
  const body = new ReadableStream({ pull: read, cancel }, { highWaterMark: 0 });
  return new Response(has_body ? body : null, { status, headers: headers as [string, string][] });
}

/** Makes the service known to the client libraries; the names are those that they look for. */
export function installGlobals(): void {
  Object.assign(globalThis, {
    [Symbol.for("langgraph.api.sdk-logger")]: logger,
    [Symbol.for("langgraph_api:fetch")]: fetchInProcess,
    [Symbol.for("langgraph_api:url")]: "http://localhost",
  });
}
