import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Duplex, Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type {
  FromHost,
  GraphHost,
  HostListener,
  HostSetup,
  LogLevel,
  StagedUpdate,
  StartHost,
  ToHost,
} from "../host.ts";
import { findPython, type Interpreter } from "./interpreter.ts";

/** `queries`: reads and updates states. */
export type HostRole = "runs" | "queries";

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

/** Folder of the packages threadmill_host and threadmill. */
const PACKAGES = fileURLToPath(new URL("../../../../python", import.meta.url));

const PROTOCOL = 1;
const MAX_FRAME_BYTES = 64 * 2 ** 20;
const HELLO_TIMEOUT_MS = 60_000;
const SPARE_DELAY_MS = 2_000;
/** Time for tracers to be flushed and context managers to be left when a host ends. */
const END_GRACE_MS = 2_000;
const KILL_DELAY_MS = 500;
const STDERR_LINES = 20;
const MAX_LINE_CHARS = 16_384;

/** Messages that only processes know. */
type ToProcess =
  | ToHost
  | { type: "load"; setup: object; role: HostRole; jobs: number; memory_mb: number }
  | { type: "taken"; run_id: string; epoch: number; chars: number }
  | { type: "end"; grace_ms: number };
type FromProcess = FromHost | { type: "hello"; protocol: number };

/** The processes of Python hosts. One that has imported LangGraph and not the project waits for the next host. */
export class PythonProcesses {
  readonly #options: PythonProcessesOptions;
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
    const interpreter = await findPython(search);
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

/** A Python process with a socket pair on descriptor 3. A frame is a JSON array of messages in one line. */
class HostProcess {
  readonly #child: ChildProcess;
  readonly #socket: Duplex;
  readonly #stderr: string[] = [];
  readonly exited: Promise<string>;
  isRunning = true;
  onMessage: (message: FromHost) => void = () => undefined;
  onLine: (level: LogLevel, line: string) => void = () => undefined;

  constructor({ path }: Interpreter, { env, project_dir }: HostSetup) {
    // A process group of its own, so that the host's end also ends the programs that its tools have started.
    this.#child = spawn(path, ["-P", "-X", "utf8", "-m", "threadmill_host"], {
      cwd: project_dir,
      env: { ...env, PYTHONPATH: PACKAGES, PYTHONDONTWRITEBYTECODE: "1" },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      detached: true,
    });
    this.#socket = this.#child.stdio[3] as Duplex;
    // The host ends when its socket is closed.
    this.#socket.on("error", () => this.kill());
    const timer = setTimeout(() => this.kill(), HELLO_TIMEOUT_MS).unref();
    readFrames(this.#socket, (messages) => {
      for (const message of messages) {
        if (message.type !== "hello") this.onMessage(message);
        else if (message.protocol === PROTOCOL) clearTimeout(timer);
        else this.kill();
      }
    });
    readLines(this.#child.stdout as Readable, (line) => this.onLine("info", line));
    readLines(this.#child.stderr as Readable, (line) => {
      this.#stderr.push(line);
      if (this.#stderr.length > STDERR_LINES) this.#stderr.shift();
      this.onLine("warn", line);
    });
    this.exited = this.#waitForExit();
  }

  send(messages: ToProcess[]): void {
    if (this.isRunning) this.#socket.write(`${JSON.stringify(messages)}\n`);
  }

  kill(): void {
    if (!this.isRunning || this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // The process has just exited.
    }
  }

  async #waitForExit(): Promise<string> {
    const reason = await new Promise<string>((resolve) => {
      this.#child.on("error", (error) => resolve(error.message));
      this.#child.on("close", (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    this.isRunning = false;
    const output = this.#stderr.join("\n");
    return `the Python process ended (${reason})${output && `: ${output}`}`;
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
      (error: Error) => this.#reportUnavailable(setup, error.message),
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
    if (message.type === "trace") message.runs = toBytes(message.runs);
    if (message.type !== "query_result") this.#listener.onMessage(message);
    else if (this.#embedding.delete(message.id)) this.#listener.onMessage(withVectors(message));
    else this.#listener.onMessage(withPage(message));
  }

  #flush(): void {
    if (this.#process && this.#batch.length > 0) this.#process.send(this.#batch.splice(0));
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

function toProcessSetup({ graphs, project_dir, python, embed, auth, app }: HostSetup): object {
  const modules = graphs.map(({ graph_id, file, export_name }) => {
    const isFile = file.startsWith("/");
    return { graph_id, file: isFile ? file : null, module: isFile ? null : file, export_name };
  });
  return { graphs: modules, project_dir, sys_path: python?.sys_path ?? [], embed, auth, app };
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

function withPage(message: Extract<FromHost, { type: "query_result" }>): FromHost {
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

function readFrames(socket: Readable, onFrame: (messages: FromProcess[]) => void): void {
  let parts: Buffer[] = [];
  let bytes = 0;
  socket.on("data", (chunk: Buffer) => {
    let rest = chunk;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const frame = parts.length === 0 ? rest.subarray(0, end) : Buffer.concat([...parts, rest.subarray(0, end)]);
      parts = [];
      bytes = 0;
      rest = rest.subarray(end + 1);
      const messages = messagesIn(frame);
      if (!messages) return socket.destroy(new Error("The Python host has sent an invalid message."));
      onFrame(messages);
    }
    if (rest.length === 0) return;
    parts.push(rest);
    bytes += rest.length;
    if (bytes > MAX_FRAME_BYTES) socket.destroy(new Error("A message of the Python host is too large."));
  });
}

/** Undefined if code of the project has written to the descriptor. */
function messagesIn(frame: Buffer): FromProcess[] | undefined {
  try {
    const messages = JSON.parse(frame.toString()) as unknown;
    return Array.isArray(messages) ? messages : undefined;
  } catch {
    return undefined;
  }
}

function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE_CHARS);
    for (const line of lines) if (line !== "") onLine(line.slice(0, MAX_LINE_CHARS));
  });
  void once(stream, "end").then(
    () => rest !== "" && onLine(rest),
    () => undefined,
  );
}
