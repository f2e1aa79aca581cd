import type {
  FromHost,
  GraphHost,
  HostListener,
  HostRequest,
  HostSetup,
  ModuleExport,
  StagedUpdate,
  StartHost,
  ToHost,
} from "../host.ts";
import { HostProcess, type HostRole, type ToProcess } from "./host-process.ts";
import { findPython, type Interpreter, type Probe } from "./interpreter.ts";

export interface PythonHostOptions {
  role: HostRole;
  jobs: number;
  memory_mb: number;
}

export interface PythonProcessesOptions {
  /** THREADMILL_PYTHON. */
  python: string | undefined;
  /** Whether a process that has imported LangGraph is kept ready. */
  has_spare: boolean;
}

const SPARE_DELAY_MS = 2_000;
/** Time for tracers to be flushed and context managers to be left when a host ends. */
const END_GRACE_MS = 2_000;
const KILL_DELAY_MS = 500;

/** The processes of Python hosts. One that has imported LangGraph and not the project waits for the next host. */
export class PythonProcesses {
  readonly #options: PythonProcessesOptions;
  readonly #probes = new Map<string, Probe>();
  #spare: { process: HostProcess; key: string } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: PythonProcessesOptions) {
    this.#options = options;
  }

  /** Returns a function that starts hosts, and that reports why none can be started as the failure of each graph. */
  starter(options: PythonHostOptions): StartHost {
    return (setup, listener) => new PythonHost(this.#take(setup), setup, options, listener);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#spare?.process.kill();
    this.#spare = undefined;
  }

  /** @throws PythonError */
  async #take(setup: HostSetup): Promise<HostProcess> {
    const { project_dir, env } = setup;
    const search = { project_dir, env, path: this.#options.python, version: setup.python?.version };
    const interpreter = await findPython(search, this.#probes);
    const key = JSON.stringify([interpreter, project_dir, env]);
    const spare = this.#spare;
    this.#spare = undefined;
    if (this.#options.has_spare) this.#startSpareLater(interpreter, setup, key);
    if (spare?.key === key && spare.process.isRunning) return spare.process;
    spare?.process.kill();
    return new HostProcess(interpreter, setup);
  }

  #startSpareLater(interpreter: Interpreter, setup: HostSetup, key: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#isStopped || this.#spare?.process.isRunning) return;
      this.#spare = { process: new HostProcess(interpreter, setup), key };
    }, SPARE_DELAY_MS).unref();
  }
}

/** A graph host in a Python process. Messages wait until the process exists. */
class PythonHost implements GraphHost {
  readonly #listener: HostListener;
  readonly #batch: ToHost[] = [];
  /** The queries whose result is a vector. */
  readonly #embedding = new Set<number>();
  #process: HostProcess | undefined;
  /** Set if there is no process. */
  #reply: ((message: ToHost) => void) | undefined;
  #isTerminating = false;

  constructor(found: Promise<HostProcess>, setup: HostSetup, options: PythonHostOptions, listener: HostListener) {
    this.#listener = listener;
    found.then(
      (process) => this.#use(process, setup, options),
      // Every request needs the handlers, so the next one looks for an interpreter again.
      ({ message }: Error) =>
        options.role === "auth" ? listener.onExit(message) : this.#reportUnavailable(setup, message),
    );
  }

  send(message: ToHost): void {
    if (message.type === "query" && message.query.kind === "embed") this.#embedding.add(message.id);
    if (this.#reply) setImmediate(this.#reply, message);
    // Sends all messages that a commit causes as one frame.
    else if (this.#batch.push(message) === 1) queueMicrotask(() => this.#flush());
  }

  async terminate(): Promise<void> {
    this.#isTerminating = true;
    const process = this.#process;
    if (!process) return;
    process.send([{ type: "end", grace_ms: END_GRACE_MS }]);
    const timer = setTimeout(() => process.kill(), END_GRACE_MS + KILL_DELAY_MS);
    await process.exited;
    clearTimeout(timer);
  }

  #use(process: HostProcess, setup: HostSetup, { role, jobs, memory_mb }: PythonHostOptions): void {
    if (this.#isTerminating) {
      process.kill();
      return;
    }
    this.#process = process;
    process.onMessage = (message) => {
      if (!this.#isTerminating) this.#receive(process, message);
    };
    process.onLine = (level, message) => this.#listener.onMessage({ type: "log", level, message, fields: "{}" });
    void process.exited.then((reason) => {
      if (!this.#isTerminating) this.#listener.onExit(reason);
    });
    process.send([{ type: "load", setup: toProcessSetup(setup), role, jobs, memory_mb }]);
    this.#flush();
  }

  #receive(process: HostProcess, message: FromHost): void {
    if (message.type === "events") {
      const { run_id, epoch, events } = message;
      const chars = events.reduce((sum, [, data]) => sum + data.length, 0);
      process.send([{ type: "taken", run_id, epoch, chars }]);
    }
    markLanguage(message);
    const { warning } = process.interpreter;
    if (message.type === "loaded" && warning) message.warnings.push(warning);
    if (message.type === "trace") message.runs = toBytes(message.runs);
    if (message.type === "request") decodeBody(message.request);
    if (message.type !== "query_result") this.#listener.onMessage(message);
    else if (this.#embedding.delete(message.id)) this.#listener.onMessage(withVectors(message));
    else this.#listener.onMessage(withPage(message));
  }

  #flush(): void {
    if (this.#process && this.#batch.length > 0) this.#process.send(this.#batch.splice(0).map(withText));
  }

  /** Stays without a process: each graph has failed to load, and queries fail with the reason. A reload starts another host. */
  #reportUnavailable({ graphs }: HostSetup, reason: string): void {
    const failures = Object.fromEntries(graphs.map(({ graph_id }) => [graph_id, reason]));
    this.#reply = (message: ToHost) => {
      if (message.type === "ping") this.#listener.onMessage({ type: "pong", id: message.id });
      const error = { name: "PythonError", message: reason };
      if (message.type === "query") this.#listener.onMessage({ type: "query_result", id: message.id, error });
      if (message.type !== "start") return;
      const { run_id, epoch } = message.order;
      const outcome = {
        ended: "error",
        output: "null",
        state: undefined,
        error: { error: "PythonError", message: reason },
      } as const;
      this.#listener.onMessage({ type: "done", run_id, epoch, outcome });
    };
    this.#listener.onMessage({ type: "loaded", failures, warnings: [] });
    for (const message of this.#batch.splice(0)) this.send(message);
  }
}

function toProcessSetup({ graphs, project_dir, python, embed, auth, app, encryption }: HostSetup): object {
  return {
    graphs: graphs.map(({ graph_id, ...module }) => ({ graph_id, ...toModule(module) })),
    project_dir,
    sys_path: python?.sys_path ?? [],
    embed: embed && "file" in embed ? toModule(embed) : embed,
    auth: auth && toModule(auth),
    app: app && toModule(app),
    encryption: encryption && toModule(encryption),
  };
}

function toModule({ file, export_name }: ModuleExport): object {
  const isFile = file.startsWith("/");
  return { file: isFile ? file : null, module: isFile ? null : file, export_name };
}

/** Marks the checkpoints that a message stores. */
function markLanguage(message: FromHost): void {
  const write = message.type === "store" ? message.write : message.type === "request" ? message.request : undefined;
  if (write?.op === "put") write.checkpoint.language = "python";
  if (message.type !== "query_result") return;
  const { puts } = (message.value ?? {}) as Partial<StagedUpdate>;
  for (const checkpoint of puts ?? []) checkpoint.language = "python";
}

/** Runs of a trace and pages of the history are text in the frame, and bytes in the service. */
const toBytes = (text: unknown) => new Uint8Array(Buffer.from(text as string));

/** Chunks of HTTP bodies are base64 in the frame. */
const fromBase64 = (text: unknown) => new Uint8Array(Buffer.from(text as string, "base64"));

function withText(message: ToHost): ToProcess {
  if (message.type !== "reply" || !(message.value instanceof Uint8Array)) return message;
  return { type: "reply", id: message.id, bytes: Buffer.from(message.value).toString("base64") };
}

function decodeBody(request: HostRequest): void {
  const fetch = request.op === "app_fetch" ? request.request : request.op === "fetch" ? request : undefined;
  if (fetch?.body) fetch.body = fromBase64(fetch.body);
}

function withPage(message: Extract<FromHost, { type: "query_result" }> & { bytes?: string }): FromHost {
  if (message.bytes !== undefined) return { ...message, value: fromBase64(message.bytes) };
  const { states } = (message.value ?? {}) as { states?: unknown };
  if (typeof states !== "string") return message;
  return { ...message, value: { ...(message.value as object), states: toBytes(states) } };
}

/** Vectors are base64 in the frame. */
function withVectors(message: Extract<FromHost, { type: "query_result" }>): FromHost {
  if (typeof message.value !== "string") return message;
  const bytes = new Uint8Array(Buffer.from(message.value, "base64"));
  return { ...message, value: new Float32Array(bytes.buffer) };
}
