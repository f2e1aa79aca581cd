import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdtempSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Kind, Wire } from "./cluster.ts";

const ROOT = resolve(import.meta.dirname, "../../..");

/** The API server, as its kubelet uses it. */
export interface KubeletApi {
  readonly images: ReadonlyMap<string, string>;
  all(kind: Kind): Promise<Wire[]>;
  setStatus(pod: Wire, status: object): Promise<void>;
  /** All processes of a pod that is being deleted have ended. */
  onStopped(pod: Wire): Promise<void>;
}

interface ContainerLogLine {
  at: string;
  text: string;
}

/** One run of a container. */
class Run {
  readonly lines: ContainerLogLine[] = [];
  readonly changed = new EventEmitter().setMaxListeners(0);
  readonly child: ChildProcess;
  hasEnded = false;

  constructor(child: ChildProcess) {
    this.child = child;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream as NodeJS.ReadableStream }).on("line", (line) => {
        const at = new Date().toISOString().replace("Z", `${String(this.lines.length % 1e6).padStart(6, "0")}Z`);
        this.lines.push({ at, text: line });
        this.changed.emit("line");
      });
    }
  }
}

interface Pod {
  runs: Run[];
  /** Where the network of the cluster would find it. */
  ip: string;
  isStopping: boolean;
}

/**
 * Executes pods: the program of an image, which is a folder with a langgraph.json, as a process on the address of its Service. Restarts
 * it once at once, and then no more, as if the back-off were endless.
 */
export class Kubelet {
  readonly #api: KubeletApi;
  readonly #pods = new Map<string, Pod>();
  #isClosed = false;

  constructor(api: KubeletApi) {
    this.#api = api;
  }

  /** Starts a pod that was not started before. */
  async start(pod: Wire): Promise<void> {
    if (this.#pods.has(pod.metadata.uid)) return;
    const ip = `10.244.0.${this.#pods.size + 1}`;
    this.#pods.set(pod.metadata.uid, { runs: [], ip, isStopping: false });
    await this.#run(pod);
  }

  async #run(pod: Wire): Promise<void> {
    const known = this.#pods.get(pod.metadata.uid) as Pod;
    const { runs } = known;
    const [container] = pod.spec.containers;
    const folder = this.#api.images.get(container.image);
    const secret = (await this.#api.all("secrets")).find(
      ({ metadata }) => metadata.name === container.envFrom[0].secretRef.name,
    );
    if (folder === undefined || secret === undefined) {
      const waiting =
        folder === undefined
          ? { reason: "ErrImagePull", message: `${container.image}: not found` }
          : { reason: "CreateContainerConfigError", message: "secret not found" };
      return this.#setStatus(pod, { waiting });
    }
    const values = Object.entries(secret.data as Record<string, string>).map(([name, value]) => [
      name,
      Buffer.from(value, "base64").toString(),
    ]);
    const service = (await this.#api.all("services")).find(({ spec }) =>
      Object.entries(spec.selector ?? {}).every(([key, value]) => pod.metadata.labels[key] === value),
    );
    if (known.isStopping) return;
    const program = [join(ROOT, "bin/threadmill.js"), "serve", "--only", "agents", "--config"];
    const child = spawn(process.execPath, [...program, join(folder, "langgraph.json")], {
      cwd: folder,
      // The data folder is a mount of the pod, and its address is that of its network.
      env: {
        PATH: process.env.PATH,
        ...Object.fromEntries(values),
        THREADMILL_DATA: mkdtempSync(join(tmpdir(), "threadmill-pod-")),
        THREADMILL_HOST: service.spec.clusterIP,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const run = new Run(child);
    runs.push(run);
    child.once("close", (code, signal) => {
      run.hasEnded = true;
      run.changed.emit("line");
      void this.#onEnd(pod, code ?? (signal === "SIGKILL" ? 137 : 143)).catch((error) => {
        // The API server can be stopped before it has answered.
        if (!this.#isClosed) throw error;
      });
    });
    await this.#setStatus(pod, { running: { startedAt: now() } });
  }

  async #onEnd(pod: Wire, exitCode: number): Promise<void> {
    const { runs, isStopping } = this.#pods.get(pod.metadata.uid) as Pod;
    if (isStopping) return this.#api.onStopped(pod);
    const terminated = {
      exitCode,
      reason: exitCode === 0 ? "Completed" : "Error",
      startedAt: now(),
      finishedAt: now(),
    };
    const waiting = { reason: "CrashLoopBackOff", message: "back-off restarting failed container" };
    await this.#setStatus(pod, { waiting }, { terminated });
    if (runs.length === 1) await this.#run(pod);
  }

  /** A later run keeps the last state of the one before. */
  readonly #lastStates = new Map<string, object>();

  async #setStatus(pod: Wire, state: Wire, lastState?: object): Promise<void> {
    const { uid } = pod.metadata;
    const { runs, ip } = this.#pods.get(uid) as Pod;
    if (lastState) this.#lastStates.set(uid, lastState);
    const [{ name, image }] = pod.spec.containers;
    const ready = state.running !== undefined;
    await this.#api.setStatus(pod, {
      phase: runs.length > 0 ? "Running" : "Pending",
      podIP: ip,
      podIPs: [{ ip }],
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
      containerStatuses: [
        {
          ...{ name, image, imageID: image, ready },
          restartCount: Math.max(0, runs.length - 1),
          state,
          lastState: this.#lastStates.get(uid) ?? {},
        },
      ],
    });
  }

  /** Ends the processes of a pod that is being deleted. */
  async stop(pod: Wire, grace_s: number): Promise<void> {
    const known = this.#pods.get(pod.metadata.uid);
    const run = known?.runs.at(-1);
    if (known) known.isStopping = true;
    if (!run || run.hasEnded) return this.#api.onStopped(pod);
    const closed = once(run.child, "close");
    if (grace_s === 0) run.child.kill("SIGKILL");
    else {
      run.child.kill("SIGTERM");
      const timer = setTimeout(() => run.child.kill("SIGKILL"), grace_s * 1000);
      run.child.once("close", () => clearTimeout(timer));
    }
    await closed;
  }

  async log(
    { metadata: { uid, name } }: Wire,
    query: URLSearchParams,
    response: ServerResponse,
    fail: (status: number, message: string) => void,
  ): Promise<void> {
    const runs = this.#pods.get(uid)?.runs ?? [];
    const run = runs.at(query.get("previous") === "true" ? -2 : -1);
    if (!run) return fail(400, `container "agent" in pod "${name}" is waiting to start`);
    response.writeHead(200, { "content-type": "text/plain" }).flushHeaders();
    const since = Date.parse(query.get("sinceTime") ?? "1970-01-01T00:00:00Z");
    const tail = Number(query.get("tailLines") ?? Number.POSITIVE_INFINITY);
    let sent = Math.max(0, run.lines.length - tail);
    const closed = once(response, "close");
    for (;;) {
      const lines = run.lines.slice(sent).filter(({ at }) => Date.parse(at) >= since);
      sent = run.lines.length;
      for (const line of lines)
        response.write(query.get("timestamps") === "true" ? `${line.at} ${line.text}\n` : `${line.text}\n`);
      if (run.hasEnded || query.get("follow") !== "true" || response.destroyed) break;
      await Promise.race([once(run.changed, "line"), closed]);
    }
    response.end();
  }

  /** Kills all processes. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const pod of this.#pods.values()) {
      pod.isStopping = true;
      for (const { child, hasEnded } of pod.runs) {
        if (hasEnded) continue;
        const closed = once(child, "close");
        child.kill("SIGKILL");
        await closed;
      }
    }
  }
}

const now = (): string => new Date().toISOString().replace(/\.\d+Z/, "Z");
