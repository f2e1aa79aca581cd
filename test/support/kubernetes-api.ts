import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";

const ROOT = resolve(import.meta.dirname, "../..");

/** Instances listen on loopback addresses of their own, which only Linux has without configuration. */
export const kubernetesMissing = (): boolean => process.platform !== "linux";

// biome-ignore lint/suspicious/noExplicitAny: objects of the API, of any kind
type Wire = any;

type Kind = "deployments" | "services" | "secrets" | "pods";
const GROUPS: Record<Kind, string> = { deployments: "apps", services: "", secrets: "", pods: "" };
const KINDS: Record<Kind, string> = { deployments: "Deployment", services: "Service", secrets: "Secret", pods: "Pod" };

export interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

/** What docs/control-plane.md asks the operator to grant. */
export const RULES: readonly Rule[] = [
  { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "create", "patch", "delete"] },
  { apiGroups: [""], resources: ["services"], verbs: ["get", "list", "create", "patch"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["create", "patch"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["list", "delete"] },
  { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
];

const USER = "system:serviceaccount:agents:threadmill";
const TOKEN = "token-of-the-service-account";

/**
 * An API server with the few endpoints that the driver uses, and in it what makes a Deployment a process: the controllers of Deployments
 * and ReplicaSets, the garbage collector, and a kubelet that starts the program of an "image", which is a folder with a langgraph.json.
 * Server-side apply has the semantics of the real one for maps; a list is one field.
 */
export class KubernetesApi {
  readonly namespace = "agents";
  readonly kubeconfig: string;
  /** Folders by the name of their image. */
  readonly images = new Map<string, string>();
  rules: readonly Rule[] = RULES;
  /** Method, kind and name of all requests that change something. */
  readonly changes: string[] = [];
  /** Called before a request is handled; what it throws ends the connection. */
  onRequest: (change: string) => void | Promise<void> = () => undefined;
  readonly #objects = new Map<string, Wire>();
  readonly #kubelet: Kubelet;
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  #addresses = 0;
  #version = 0;

  private constructor(folder: string) {
    this.kubeconfig = join(folder, "kubeconfig.json");
    this.#kubelet = new Kubelet(this);
  }

  static async start(): Promise<KubernetesApi> {
    const api = new KubernetesApi(mkdtempSync(join(tmpdir(), "threadmill-kubernetes-")));
    api.#server.listen(0, "127.0.0.1");
    await once(api.#server, "listening");
    const server = `http://127.0.0.1:${(api.#server.address() as AddressInfo).port}`;
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "test", cluster: { server, "insecure-skip-tls-verify": true } }],
      users: [{ name: "threadmill", user: { token: TOKEN } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "threadmill", namespace: api.namespace } }],
      "current-context": "test",
    };
    writeFileSync(api.kubeconfig, JSON.stringify(config));
    return api;
  }

  async stop(): Promise<void> {
    for (const pod of this.all("pods")) await this.#kubelet.kill(pod, 0);
    this.#server.close();
    this.#server.closeAllConnections();
  }

  all = (kind: Kind): Wire[] =>
    [...this.#objects].filter(([key]) => key.startsWith(`${kind}/`)).map(([, object]) => object);

  get = (kind: Kind, name: string): Wire => this.#objects.get(`${kind}/${name}`);

  /** A change by another program, such as kubectl, which takes the ownership of the fields. */
  change(kind: Kind, name: string, manager: string, config: object): void {
    this.#merge(kind, name, config, { manager, operation: "Update", force: true });
    this.#reconcile();
  }

  /** As the drain of a node does, which also waits for nothing. */
  evict(pod: Wire): void {
    this.#delete("pods", pod, 0);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", "http://api");
    const match = /^\/(?:api\/v1|apis\/apps\/v1)\/namespaces\/([^/]+)\/(\w+)(?:\/([^/]+))?(\/log)?$/.exec(url.pathname);
    const [, namespace = "", kind, name, log] = match ?? [];
    const { method } = request;
    const send = (status: number, body: object) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    const fail = (status: number, message: string) =>
      send(status, { apiVersion: "v1", kind: "Status", status: "Failure", code: status, message });
    try {
      const body = await text(request);
      if (method !== "GET") await this.onRequest(`${method} ${kind}/${name}`);
      if (request.headers.authorization !== `Bearer ${TOKEN}`) return fail(401, "Unauthorized");
      if (!isKind(kind) || namespace !== this.namespace) return fail(404, "the server could not find the resource");
      const exists = name !== undefined && this.get(kind, name) !== undefined;
      const denied = this.#denied(kind, `${kind}${log ? "/log" : ""}`, verbsOf(method, name, exists));
      if (denied !== undefined) return fail(403, denied);
      if (method !== "GET") this.changes.push(`${method} ${kind}/${name}`);
      if (method === "PATCH") {
        if (request.headers["content-type"] !== "application/apply-patch+yaml") return fail(415, "unsupported type");
        const manager = url.searchParams.get("fieldManager") ?? "";
        if (manager === "") return fail(422, "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value");
        const owner = { manager, operation: "Apply", force: url.searchParams.get("force") === "true" } as const;
        const conflict = this.#merge(kind, name as string, JSON.parse(body), owner);
        if (conflict !== undefined) return fail(409, conflict);
        this.#reconcile();
        return send(exists ? 200 : 201, this.get(kind, name as string));
      }
      if (name === undefined) {
        const labels = (url.searchParams.get("labelSelector") ?? "").split(",").map((term) => term.split("="));
        const items = this.all(kind).filter(({ metadata }) =>
          labels.every(([key = "", value]) => metadata.labels?.[key] === value),
        );
        return send(200, { kind: `${KINDS[kind]}List`, items });
      }
      if (!exists) return fail(404, `${kind} "${name}" not found`);
      if (log) return await this.#kubelet.log(this.get("pods", name), url.searchParams, response, fail);
      if (method === "DELETE") {
        const { gracePeriodSeconds } = JSON.parse(body || "{}");
        this.#delete(kind, this.get(kind, name), gracePeriodSeconds);
        return send(200, { kind: "Status", status: "Success" });
      }
      send(200, this.get(kind, name));
    } catch {
      request.socket.destroy();
    }
  }

  #denied(kind: Kind, resource: string, verbs: readonly string[]): string | undefined {
    for (const verb of verbs) {
      const isAllowed = this.rules.some(
        (rule) =>
          rule.apiGroups.includes(GROUPS[kind]) && rule.resources.includes(resource) && rule.verbs.includes(verb),
      );
      if (isAllowed) continue;
      return `${kind}${GROUPS[kind] ? `.${GROUPS[kind]}` : ""} is forbidden: User "${USER}" cannot ${verb} resource "${resource}" in API group "${GROUPS[kind]}" in the namespace "${this.namespace}"`;
    }
    return undefined;
  }

  /** Applies the fields of a manager. Returns the conflict with another manager, if there is one. */
  #merge(kind: Kind, name: string, config: Wire, owner: Owner): string | undefined {
    const live = this.get(kind, name) ?? this.#empty(kind, name);
    const fields = fieldsOf({
      ...config,
      metadata: { labels: config.metadata?.labels, ownerReferences: config.metadata?.ownerReferences },
    });
    const managers: Map<string, Set<string>> = live[MANAGERS];
    const own = managers.get(owner.manager) ?? new Set();
    const conflicts: string[] = [];
    for (const [path, value] of fields) {
      if (isDeepStrictEqual(valueAt(live, path), value)) continue;
      for (const [manager, owned] of managers) {
        if (manager !== owner.manager && owned.has(path))
          conflicts.push(`conflict with "${manager}": .${partsOf(path).join(".")}`);
      }
    }
    if (conflicts.length > 0 && !owner.force)
      return `Apply failed with ${conflicts.length} conflict${conflicts.length > 1 ? "s" : ""}: ${conflicts.join(", ")}`;
    for (const [path, value] of fields) {
      if (!isDeepStrictEqual(valueAt(live, path), value))
        for (const [manager, owned] of managers) if (manager !== owner.manager) owned.delete(path);
      setAt(live, path, value);
    }
    if (owner.operation === "Apply") {
      for (const path of own) {
        const isShared = [...managers].some(([manager, owned]) => manager !== owner.manager && owned.has(path));
        if (!fields.has(path) && !isShared) setAt(live, path, undefined);
      }
      managers.set(owner.manager, new Set(fields.keys()));
    } else managers.set(owner.manager, new Set([...own, ...fields.keys()]));
    live.metadata.resourceVersion = String(++this.#version);
    this.#objects.set(`${kind}/${name}`, live);
    return undefined;
  }

  #empty(kind: Kind, name: string): Wire {
    const object: Wire = {
      metadata: { name, namespace: this.namespace, uid: randomUUID(), creationTimestamp: new Date().toISOString() },
    };
    Object.defineProperty(object, MANAGERS, { value: new Map() });
    if (kind === "services")
      object.spec = {
        clusterIP: `127.${1 + (process.pid % 200)}.${1 + ((process.pid >> 8) % 200)}.${++this.#addresses}`,
      };
    return object;
  }

  #delete(kind: Kind, object: Wire, grace_s?: number): void {
    if (kind === "pods") {
      object.metadata.deletionTimestamp ??= new Date().toISOString();
      void this.#kubelet.kill(object, grace_s ?? object.spec.terminationGracePeriodSeconds);
      this.#reconcile();
      return;
    }
    this.#objects.delete(`${kind}/${object.metadata.name}`);
    // The garbage collector.
    for (const dependent of ["deployments", "services", "secrets", "pods"] as const) {
      for (const owned of this.all(dependent)) {
        const owners: Wire[] = owned.metadata.ownerReferences ?? [];
        if (owners.some(({ uid }) => uid === object.metadata.uid)) this.#delete(dependent, owned);
      }
    }
  }

  /** Called by the kubelet when all processes of a pod have ended. */
  podEnded(pod: Wire): void {
    this.#objects.delete(`pods/${pod.metadata.name}`);
  }

  /** The controllers of Deployments and ReplicaSets. */
  #reconcile(): void {
    for (const deployment of this.all("deployments")) {
      const { uid, name } = deployment.metadata;
      const pods = this.all("pods").filter(
        ({ metadata }) => !metadata.deletionTimestamp && metadata.ownerReferences[0].uid === uid,
      );
      const { replicas, template, paused } = deployment.spec;
      // A paused Deployment gets no ReplicaSet.
      if (paused && pods.length === 0) continue;
      for (const pod of pods.slice(replicas)) this.#delete("pods", pod);
      for (let count = pods.length; count < replicas; count++) {
        const pod: Wire = structuredClone(template);
        pod.metadata = {
          ...pod.metadata,
          name: `${name}-${randomUUID().slice(0, 5)}`,
          namespace: this.namespace,
          uid: randomUUID(),
          creationTimestamp: new Date().toISOString(),
          ownerReferences: [{ kind: "Deployment", name, uid }],
        };
        pod.status = { phase: "Pending" };
        this.#objects.set(`pods/${pod.metadata.name}`, pod);
        this.#kubelet.start(pod);
      }
    }
  }
}

const MANAGERS = Symbol("field managers");

interface Owner {
  manager: string;
  operation: "Apply" | "Update";
  force: boolean;
}

const isKind = (kind: string | undefined): kind is Kind => kind !== undefined && kind in GROUPS;

function verbsOf(method: string | undefined, name: string | undefined, exists: boolean): string[] {
  if (method === "PATCH") return exists ? ["patch"] : ["patch", "create"];
  return [method === "DELETE" ? "delete" : name === undefined ? "list" : "get"];
}

/** The leaves of an object by their paths, as JSON. */
function fieldsOf(object: Wire, path: readonly string[] = []): Map<string, unknown> {
  if (object === undefined) return new Map();
  const isMap =
    typeof object === "object" && object !== null && !Array.isArray(object) && Object.keys(object).length > 0;
  if (!isMap) return new Map([[JSON.stringify(path), object]]);
  return new Map(Object.entries(object).flatMap(([key, value]) => [...fieldsOf(value, [...path, key])]));
}

const partsOf = (path: string): string[] => JSON.parse(path);

function valueAt(object: Wire, path: string): unknown {
  return partsOf(path).reduce((at: Wire, key) => at?.[key], object);
}

function setAt(object: Wire, path: string, value: unknown): void {
  const keys = partsOf(path);
  const last = keys.pop() as string;
  let at = object;
  for (const key of keys) at = at[key] ??= {};
  if (value === undefined) delete at[last];
  else at[last] = value;
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

/** Starts the program of an image as a process; restarts it once at once, and then no more, as if the back-off were endless. */
class Kubelet {
  readonly #api: KubernetesApi;
  readonly #runs = new Map<string, Run[]>();

  constructor(api: KubernetesApi) {
    this.#api = api;
  }

  start(pod: Wire): void {
    const [container] = pod.spec.containers;
    const folder = this.#api.images.get(container.image);
    const secret = this.#api.get("secrets", container.envFrom[0].secretRef.name);
    const waiting =
      folder === undefined
        ? { reason: "ErrImagePull", message: `${container.image}: not found` }
        : secret === undefined
          ? { reason: "CreateContainerConfigError", message: "secret not found" }
          : undefined;
    if (waiting || folder === undefined) {
      pod.status = { phase: "Pending", containerStatuses: [{ restartCount: 0, state: { waiting } }] };
      return;
    }
    const values = Object.entries(secret.data as Record<string, string>).map(([name, value]) => [
      name,
      Buffer.from(value, "base64").toString(),
    ]);
    const service = this.#api
      .all("services")
      .find(({ spec }) => Object.entries(spec.selector).every(([key, value]) => pod.metadata.labels[key] === value));
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
    const runs = this.#runs.get(pod.metadata.uid) ?? [];
    this.#runs.set(pod.metadata.uid, [...runs, run]);
    pod.status = {
      phase: "Running",
      containerStatuses: [{ ...pod.status.containerStatuses?.[0], restartCount: runs.length, state: { running: {} } }],
    };
    child.once("close", (code, signal) => {
      run.hasEnded = true;
      run.changed.emit("line");
      this.#onEnd(pod, runs.length, code ?? (signal === "SIGKILL" ? 137 : 143));
    });
  }

  #onEnd(pod: Wire, restarts: number, exitCode: number): void {
    if (pod.metadata.deletionTimestamp) {
      this.#api.podEnded(pod);
      return;
    }
    const lastState = { terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error" } };
    const waiting = { reason: "CrashLoopBackOff", message: "back-off restarting failed container" };
    pod.status.containerStatuses = [{ restartCount: restarts, state: { waiting }, lastState }];
    if (restarts === 0) this.start(pod);
  }

  async kill(pod: Wire, grace_s: number): Promise<void> {
    const run = this.#runs.get(pod.metadata.uid)?.at(-1);
    if (!run || run.hasEnded) return this.#api.podEnded(pod);
    if (grace_s === 0) run.child.kill("SIGKILL");
    else {
      run.child.kill("SIGTERM");
      const timer = setTimeout(() => run.child.kill("SIGKILL"), grace_s * 1000);
      run.child.once("close", () => clearTimeout(timer));
    }
    await once(run.child, "close");
  }

  async log(
    pod: Wire,
    query: URLSearchParams,
    response: ServerResponse,
    fail: (status: number, message: string) => void,
  ): Promise<void> {
    const runs = this.#runs.get(pod.metadata.uid) ?? [];
    const run = runs.at(query.get("previous") === "true" ? -2 : -1);
    if (!run) return fail(400, `container "agent" in pod "${pod.metadata.name}" is waiting to start`);
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
}
