import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { withTimeout } from "../../../platform/lib/signal.ts";
import type { FromHost, HostSetup, LogLevel, ToHost } from "../host.ts";
import type { Interpreter } from "./interpreter.ts";

/** `queries`: reads and updates states. `auth`: the handlers that langgraph.json names. `app`: the HTTP app. */
export type HostRole = "runs" | "queries" | "auth" | "app";

/** Messages that only processes know. */
export type ToProcess =
  | ToHost
  | { type: "load"; setup: object; role: HostRole; jobs: number; memory_mb: number }
  /** A reply whose value is bytes, in base64. */
  | { type: "reply"; id: number; bytes: string }
  | { type: "taken"; run_id: string; epoch: number; chars: number }
  | { type: "end"; grace_ms: number };
type FromProcess = FromHost | { type: "hello"; protocol: number };

/** Folder of the packages threadmill_host and threadmill. */
const PACKAGES = fileURLToPath(new URL("../../../../python", import.meta.url));

const PROTOCOL = 1;
const MAX_FRAME_BYTES = 64 * 2 ** 20;
const HELLO_TIMEOUT_MS = 60_000;
const STDERR_LINES = 20;
const LAST_OUTPUT_MS = 200;
const MAX_LINE_CHARS = 16_384;

/** A Python process with a socket pair on descriptor 3. A frame is a JSON array of messages in one line. */
export class HostProcess {
  readonly #child: ChildProcess;
  readonly #socket: Duplex;
  readonly #stderr: string[] = [];
  readonly #closed: Promise<unknown>;
  readonly exited: Promise<string>;
  readonly interpreter: Interpreter;
  isRunning = true;
  onMessage: (message: FromHost) => void = () => undefined;
  onLine: (level: LogLevel, line: string) => void = () => undefined;

  constructor(interpreter: Interpreter, { env, project_dir }: HostSetup) {
    this.interpreter = interpreter;
    // A process group of its own, so that the host's end also ends the programs that its tools have started.
    this.#child = spawn(interpreter.path, ["-P", "-X", "utf8", "-m", "threadmill_host"], {
      cwd: project_dir,
      env: { ...env, PYTHONPATH: [PACKAGES, env.PYTHONPATH].filter(Boolean).join(delimiter) },
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      detached: true,
    });
    this.#socket = this.#child.stdio[3] as Duplex;
    readAfterFailedWrites(this.#socket);
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
    this.#closed = once(this.#child, "close").catch(() => undefined);
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
      this.#child.on("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    // Reads the rest of the output. A program that a tool has started can keep it open.
    await withTimeout(this.#closed, LAST_OUTPUT_MS);
    // If this thread was blocked, the timer runs before the messages of the host are read.
    await setImmediate();
    // Ends the programs that its tools have started.
    this.kill();
    this.isRunning = false;
    const output = this.#stderr.join("\n");
    return `the Python process ended (${reason})${output && `: ${output}`}`;
  }
}

/**
 * A failed write destroys a socket of Node.js with the messages that it has not read. They show which runs have started: without them,
 * the nodes of a run that has started would be executed again without counting an attempt. The end of the host follows.
 */
function readAfterFailedWrites(socket: Duplex): void {
  const [write, writeMany] = [socket._write.bind(socket), socket._writev?.bind(socket)];
  socket._write = (chunk, encoding, done) => write(chunk, encoding, () => done());
  if (writeMany) socket._writev = (chunks, done) => writeMany(chunks, () => done());
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
      if (!messages) return socket.destroy(new Error("The Python host sent an invalid message."));
      onFrame(messages);
    }
    if (rest.length === 0) return;
    parts.push(rest);
    bytes += rest.length;
    if (bytes > MAX_FRAME_BYTES) socket.destroy(new Error("A message from the Python host is too large."));
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
