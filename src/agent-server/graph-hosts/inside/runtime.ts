import { AsyncLocalStorage } from "node:async_hooks";
import type { JsonObject } from "../../../platform/lib/json/json.ts";
import { unlessAborted } from "../../../platform/lib/signal.ts";
import type { RequestToken } from "../author/token-interrupt.ts";
import { fetchByMessages } from "../fetch-exchange.ts";
import type { FromHost, HostOutcome, HostSetup, LogLevel, RunEpoch, RunOrder, ToHost, TokenAnswer } from "../host.ts";
import type { NewFetch } from "../host-http.ts";
import { AppServer } from "./app-server.ts";
import { createCheckpointer } from "./checkpointer.ts";
import { ServiceConnection } from "./connection.ts";
import { executeRun, RunControls } from "./execute.ts";
import { loadGraphs } from "./loading/load.ts";
import { runQuery } from "./queries.ts";
import { createStore, type RequestStore } from "./store.ts";
import { type EndOfTrace, TraceSink } from "./trace-sink.ts";
import { withDeployment } from "./tracer.ts";
import { toWire } from "./wire.ts";

export function startRuntime(
  setup: HostSetup,
  send: (messages: FromHost[]) => void,
): { receive(message: ToHost): void } {
  const connection = new ServiceConnection(send);
  installGlobals();
  const loading = inContext({ connection }, () =>
    loadGraphs(setup, (library) => ({
      checkpointer: createCheckpointer(library, connection),
      store: createStore(library, requestStore),
    })),
  );
  const app_server = new AppServer({
    connection,
    load: async () => (await loading).app(),
    inRequest: (app_request, work) => inContext({ connection, app_request }, work),
  });
  const runs = new Map<string, RunControls>();
  void loading.then((graphs) =>
    connection.post({ type: "loaded", failures: graphs.failures, warnings: graphs.warnings }),
  );

  async function start(
    { order, head, prior_writes, resume_consumed, trace }: Extract<ToHost, { type: "start" }>,
    controls: RunControls,
  ): Promise<void> {
    const graphs = await loading;
    connection.post({ type: "started", run_id: order.run_id, epoch: order.epoch });
    // The message must be sent before the graph runs. If the graph blocked or killed the thread first, the run would count as not
    // started and would be assigned to one host after another.
    await new Promise(setImmediate);
    const emit = (event: string, data: string) => connection.emit(order, event, data);
    const requestToken: RequestToken = (request) =>
      unlessAborted(controls.signal, connection.request(order, { ...request, op: "token" }) as Promise<TokenAnswer>);
    const { run_id, epoch } = order;
    const send = (runs: Uint8Array<ArrayBuffer>, is_last: boolean) =>
      connection.post({ type: "trace", run_id, epoch, runs, is_last });
    const tracing = trace && { order, trace, sink: new TraceSink(order, withDeployment(trace), send) };
    const outcome = await inContext({ connection, run: { order, signal: controls.signal } }, () =>
      executeRun({ order, head, prior_writes, resume_consumed, graphs, controls, emit, requestToken, tracing }),
    );
    runs.delete(keyOf(order));
    connection.post({ type: "done", run_id, epoch, outcome });
    await tracing?.sink.finish(endOfTrace(outcome, controls));
  }

  return {
    receive(message) {
      switch (message.type) {
        case "start": {
          const controls = new RunControls();
          runs.set(keyOf(message.order), controls);
          // Starts the run in the next turn, so that an abort that has arrived in the meantime is handled first.
          setImmediate(() => void start(message, controls));
          break;
        }
        case "abort":
          runs.get(keyOf(message))?.abort(message.reason);
          break;
        case "drain":
          runs.get(keyOf(message))?.drain();
          break;
        case "query":
          void loading.then(async (graphs) =>
            connection.post(await inContext({ connection }, () => runQuery(message, graphs, app_server))),
          );
          break;
        case "reply":
          connection.onReply(message);
          break;
        case "ping":
          connection.post({ type: "pong", id: message.id });
      }
    },
  };
}

function endOfTrace({ ended, output, error }: HostOutcome, { abort_reason }: RunControls): EndOfTrace {
  if (ended === "drained" || abort_reason === "lease_lost") return { kind: "continues" };
  if (abort_reason !== undefined) return { kind: "stopped" };
  const interrupts = ended === "interrupted" ? (JSON.parse(output) as JsonObject | null)?.__interrupt__ : undefined;
  return { kind: "ended", error: error && `${error.error}: ${error.message}`, interrupts };
}

const keyOf = ({ run_id, epoch }: RunEpoch) => `${run_id} ${epoch}`;

interface ProjectContext {
  connection: ServiceConnection;
  /** Absent while modules are loaded and in queries. */
  run?: { order: RunOrder; signal: AbortSignal };
  /** The request that the HTTP app responds to. */
  app_request?: { id: number; signal: AbortSignal };
}

/** Identifies the run of a call: client libraries read their logger and `fetch` from `globalThis`, and the runs of a host share a thread. */
const contextStorage = new AsyncLocalStorage<ProjectContext>();

const inContext = <T>(context: ProjectContext, work: () => T): T => contextStorage.run(context, work);

/** The methods of the client library's `Logger`, with their levels in the service's log. */
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

/** `(message, ...meta)` or `({message, ...meta})`, as in the client library. Returns the logger. */
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

function writeLog(level: LogLevel, entry: unknown, meta: readonly unknown[]): void {
  const { connection, run } = contextStorage.getStore() ?? {};
  const { message, ...fields } = isRecord(entry) ? entry : { message: entry };
  const all = Object.assign({}, fields, ...meta.map((part) => (isRecord(part) ? part : { meta: part })));
  const key = run && { run_id: run.order.run_id, epoch: run.order.epoch };
  connection?.post({ type: "log", run: key, level, message: textOf(message), fields: textOf(all) });
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Error);

/** Returns JSON text, or the string itself. Never throws, because a log call must not make a node fail. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return toWire(value);
  } catch {
    return JSON.stringify({ unserializable: String(value) });
  }
}

/** @throws Error outside of a run; `signal.reason` when the run is aborted */
const requestStore: RequestStore = async (operations) => {
  const { connection, run } = contextStorage.getStore() ?? {};
  if (!connection || !run)
    throw new Error(
      "The store is available only during a run, not while the graph is being loaded or its state is being read.",
    );
  return (await unlessAborted(run.signal, connection.request(run.order, { op: "store", operations }))) as unknown[];
};

/**
 * Sends a request to this server without a socket, as the caller of the run or of the request to the HTTP app.
 *
 * @throws Error outside of a run and of a request to the HTTP app; `signal.reason` when one of their signals is aborted
 */
async function fetchInProcess(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const { connection, run, app_request } = contextStorage.getStore() ?? {};
  const signal = run?.signal ?? app_request?.signal;
  if (!connection || !signal)
    throw new Error(
      "A client without a URL works only during a run or a request to the HTTP app. Elsewhere, pass the URL of the server to the client.",
    );
  const request = new Request(input, init);
  const { pathname, search } = new URL(request.url);
  const message: NewFetch = {
    op: "fetch",
    id: connection.nextId(),
    method: request.method,
    path: `${pathname}${search}`,
    headers: [...request.headers],
    body: request.body === null ? undefined : new Uint8Array(await request.arrayBuffer()),
  };
  return fetchByMessages(message, AbortSignal.any([signal, request.signal]), (sent) =>
    connection.request(
      run?.order,
      app_request && sent.op === "fetch"
        ? { op: "app_fetch", id: app_request.id, is_next: false, request: sent }
        : sent,
    ),
  );
}

function installGlobals(): void {
  Object.assign(globalThis, {
    [Symbol.for("langgraph.api.sdk-logger")]: logger,
    [Symbol.for("langgraph_api:fetch")]: fetchInProcess,
    [Symbol.for("langgraph_api:url")]: "http://localhost",
  });
}
