import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { Worker } from "node:worker_threads";
import type { FromHost, GraphHost, HostListener, HostSetup, StartHost, ToHost } from "./host.ts";

/**
 * LangGraph makes V8 grow the young generation to 100 MB, and V8 never shrinks it. With this limit a new host takes 70 MB less and
 * executes the same number of runs.
 */
const YOUNG_GENERATION_MB = 24;

/** The extension is that of this module: .ts in the repository, .js in the package. */
const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
const ENTRY = new URL(`./inside/host-entry${extension}`, import.meta.url);

/** Starts hosts in worker threads with a heap limit in MB. `process.exit` in a node ends only the thread. */
export const startInThread =
  (memory_mb: number): StartHost =>
  (setup: HostSetup, listener: HostListener): GraphHost => {
    let isTerminating = false;
    let reason: string | undefined;
    const batch: ToHost[] = [];
    const worker = new Worker(ENTRY, {
      workerData: setup,
      env: { ...setup.env },
      resourceLimits: { maxOldGenerationSizeMb: memory_mb, maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
      name: "graph host",
    });
    worker.on("message", (messages: FromHost[]) => {
      for (const message of messages) listener.onMessage(message);
    });
    // The graph's code can throw anything, such as null.
    worker.on("error", (error: unknown) => {
      const { code, message } = (error ?? {}) as { code?: string; message?: string };
      reason =
        code === "ERR_WORKER_OUT_OF_MEMORY" ? outOfMemory(memory_mb) : (message ?? `uncaught: ${inspect(error)}`);
    });
    worker.on("exit", (code) => {
      if (!isTerminating) listener.onExit(reason ?? exitedWith(code));
    });
    return {
      send(message) {
        // Sends all messages that a commit causes with one postMessage() call.
        if (batch.push(message) === 1) queueMicrotask(() => worker.postMessage(batch.splice(0)));
      },
      async terminate() {
        isTerminating = true;
        await worker.terminate();
      },
    };
  };

const outOfMemory = (memory_mb: number): string => `out of memory (heap limit ${memory_mb} MB)`;
const exitedWith = (code: number): string => `the graph's code called process.exit(${code})`;

/** Only the end of the output can contain the reason of V8 or Node.js. */
const STDERR_CHARS = 4_000;

/** The error that ended a process: Node.js writes its stack, and its own version at the end. */
function uncaughtError(errors: string): string | undefined {
  if (!errors.trimEnd().endsWith(`Node.js ${process.version}`)) return undefined;
  const [, message] = /^\w*Error: (.*)/m.exec(errors) ?? [];
  if (message !== undefined) return message;
  const [, value] = /^ *\^\n(.+)/m.exec(errors) ?? [];
  return value && `uncaught: ${value}`;
}

/** Starts hosts in processes with a heap limit in MB, so that nothing that a graph does can end the process of the service. */
export const startInProcess =
  (memory_mb: number): StartHost =>
  (setup: HostSetup, listener: HostListener): GraphHost => {
    // In a process group of its own, so that the host's end also ends the programs that its tools have started.
    const child = fork(fileURLToPath(ENTRY), {
      env: { ...setup.env },
      execArgv: [...process.execArgv, `--max-old-space-size=${memory_mb}`],
      stdio: ["ignore", "inherit", "pipe", "ipc", "pipe"],
      serialization: "advanced",
      detached: true,
    });
    let errors = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      process.stderr.write(text);
      errors = (errors + text).slice(-STDERR_CHARS);
    });
    let isTerminating = false;
    const end = (reason: string) => {
      if (!isTerminating) listener.onExit(reason);
      isTerminating = true;
    };
    child.on("message", (messages: FromHost[]) => {
      for (const message of messages) listener.onMessage(message);
    });
    // A message to a process that has just ended. "close" follows.
    child.on("error", (error) => child.pid === undefined && end(error.message));
    child.on("close", (code, signal) => {
      if (errors.includes("heap out of memory")) end(outOfMemory(memory_mb));
      else if (code === null) end(`its process was terminated by ${signal}`);
      else end(uncaughtError(errors) ?? exitedWith(code));
    });
    const batch: ToHost[] = [];
    child.send(setup);
    return {
      send(message) {
        if (batch.push(message) === 1) queueMicrotask(() => child.connected && child.send(batch.splice(0)));
      },
      async terminate() {
        isTerminating = true;
        // The ID of a process that has ended may belong to another one.
        if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
        try {
          process.kill(-child.pid, "SIGKILL");
        } catch {
          // It has just ended.
        }
      },
    };
  };

/** Starts a host on the serving thread (`--inline`), for debuggers. A node that blocks the thread blocks the server. */
export const startInline: StartHost = (setup: HostSetup, listener: HostListener): GraphHost => {
  let isTerminated = false;
  const receive = (messages: FromHost[]) => {
    if (isTerminated) return;
    setImmediate(() => {
      for (const message of messages) listener.onMessage(message);
    });
  };
  // Loaded on demand: with worker threads the serving thread never loads LangGraph.
  const runtime = import("./inside/runtime.ts").then(({ startRuntime }) => startRuntime(setup, receive));
  return {
    // Copies the message, as sending it to a thread would.
    send: (message: ToHost) => {
      const copy = structuredClone(message);
      void runtime.then((host) => host.receive(copy));
    },
    async terminate() {
      isTerminated = true;
    },
  };
};

/**
 * Starts a host before its user exists. The first call of the returned function hands this host over, with the messages that it has
 * sent; further calls start new hosts.
 */
export function startAhead(startHost: StartHost, setup: HostSetup): StartHost {
  let listener: HostListener | undefined;
  const undelivered: ((to: HostListener) => void)[] = [];
  const deliver = (event: (to: HostListener) => void) => {
    if (listener) event(listener);
    else undelivered.push(event);
  };
  let host: GraphHost | undefined = startHost(setup, {
    onMessage: (message) => deliver((to) => to.onMessage(message)),
    onExit: (reason) => deliver((to) => to.onExit(reason)),
  });
  return (later_setup, to) => {
    if (!host) return startHost(later_setup, to);
    const first = host;
    host = undefined;
    listener = to;
    // After the caller has received the host, and before further messages arrive.
    queueMicrotask(() => {
      for (const event of undelivered.splice(0)) event(to);
    });
    return first;
  };
}
