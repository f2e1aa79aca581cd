import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import {
  type Kind,
  kubeconfigFor,
  NAMESPACE,
  RULES,
  type Rule,
  type TestCluster,
  TOKEN,
  USER,
  type Wire,
} from "./cluster.ts";
import { Kubelet } from "./kubelet.ts";

const GROUPS: Record<Kind, string> = { deployments: "apps", services: "", secrets: "", pods: "" };
const KINDS: Record<Kind, string> = { deployments: "Deployment", services: "Service", secrets: "Secret", pods: "Pod" };

/**
 * An API server with the few endpoints that the driver uses, and in it the controllers of Deployments and ReplicaSets and the garbage
 * collector. Server-side apply has the semantics of the real one for maps; a list is one field.
 */
export class KubernetesApi implements TestCluster {
  readonly kubeconfig: string;
  readonly #folder: string;
  readonly images = new Map<string, string>();
  #rules = RULES;
  onRequest: (change: string) => void | Promise<void> = () => undefined;
  readonly #objects = new Map<string, Wire>();
  readonly #kubelet: Kubelet;
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  #addresses = 0;
  #version = 0;

  private constructor(folder: string) {
    this.#folder = folder;
    this.kubeconfig = join(folder, "kubeconfig.json");
    this.#kubelet = new Kubelet({
      images: this.images,
      all: async (kind) => this.#all(kind),
      async setStatus(pod, status) {
        pod.status = status;
      },
      onStopped: async ({ metadata }) => void this.#objects.delete(`pods/${metadata.name}`),
    });
  }

  static async start(): Promise<KubernetesApi> {
    const api = new KubernetesApi(mkdtempSync(join(tmpdir(), "threadmill-kubernetes-")));
    api.#server.listen(0, "127.0.0.1");
    await once(api.#server, "listening");
    const server = `http://127.0.0.1:${(api.#server.address() as AddressInfo).port}`;
    writeFileSync(api.kubeconfig, kubeconfigFor(server));
    return api;
  }

  async stop(): Promise<void> {
    await this.#kubelet.close();
    this.#server.close();
    this.#server.closeAllConnections();
    rmSync(this.#folder, { recursive: true });
  }

  #all = (kind: Kind): Wire[] =>
    [...this.#objects].filter(([key]) => key.startsWith(`${kind}/`)).map(([, object]) => object);

  #get = (kind: Kind, name: string): Wire => this.#objects.get(`${kind}/${name}`);

  async all(kind: Kind): Promise<Wire[]> {
    return this.#all(kind);
  }

  async grant(rules: readonly Rule[]): Promise<void> {
    this.#rules = rules;
  }

  async change(kind: Kind, name: string, manager: string, config: object): Promise<void> {
    this.#merge(kind, name, config, { manager, operation: "Update", force: true });
    this.#reconcile();
  }

  async evict(pod: Wire): Promise<void> {
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
      if (!isKind(kind) || namespace !== NAMESPACE) return fail(404, "the server could not find the resource");
      const exists = name !== undefined && this.#get(kind, name) !== undefined;
      const denied = this.#denied(kind, name, `${kind}${log ? "/log" : ""}`, verbsOf(method, name, exists));
      if (denied !== undefined) return fail(403, denied);
      if (method === "PATCH") {
        if (request.headers["content-type"] !== "application/apply-patch+yaml") return fail(415, "unsupported type");
        const manager = url.searchParams.get("fieldManager") ?? "";
        if (manager === "") return fail(422, "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value");
        const owner = { manager, operation: "Apply", force: url.searchParams.get("force") === "true" } as const;
        const conflict = this.#merge(kind, name as string, JSON.parse(body), owner);
        if (conflict !== undefined) return fail(409, conflict);
        this.#reconcile();
        return send(exists ? 200 : 201, this.#get(kind, name as string));
      }
      if (name === undefined) {
        const labels = (url.searchParams.get("labelSelector") ?? "").split(",").map((term) => term.split("="));
        const items = this.#all(kind).filter(({ metadata }) =>
          labels.every(([key = "", value]) => metadata.labels?.[key] === value),
        );
        return send(200, { kind: `${KINDS[kind]}List`, items });
      }
      if (!exists) return fail(404, `${kind} "${name}" not found`);
      if (log) return await this.#kubelet.log(this.#get("pods", name), url.searchParams, response, fail);
      if (method === "DELETE") {
        const { gracePeriodSeconds } = JSON.parse(body || "{}");
        this.#delete(kind, this.#get(kind, name), gracePeriodSeconds);
        return send(200, { kind: "Status", status: "Success" });
      }
      send(200, this.#get(kind, name));
    } catch {
      request.socket.destroy();
    }
  }

  #denied(kind: Kind, name: string | undefined, resource: string, verbs: readonly string[]): string | undefined {
    for (const verb of verbs) {
      const isAllowed = this.#rules.some(
        (rule) =>
          rule.apiGroups.includes(GROUPS[kind]) && rule.resources.includes(resource) && rule.verbs.includes(verb),
      );
      if (isAllowed) continue;
      const object = name === undefined ? "" : ` "${name}"`;
      const denied = `${kind}${GROUPS[kind] ? `.${GROUPS[kind]}` : ""}${object} is forbidden: `;
      // Objects are created by server-side apply only, of which the API server says no more.
      if (verb === "create") return denied;
      return `${denied}User "${USER}" cannot ${verb} resource "${resource}" in API group "${GROUPS[kind]}" in the namespace "${NAMESPACE}"`;
    }
    return undefined;
  }

  /** Applies the fields of a manager. Returns the conflict with another manager, if there is one. */
  #merge(kind: Kind, name: string, config: Wire, owner: Owner): string | undefined {
    const live = this.#get(kind, name) ?? this.#empty(kind, name);
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
          conflicts.push(`conflict with "${manager}" using apps/v1 at ${now()}: .${partsOf(path).join(".")}`);
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
    live.metadata.generation = (live.metadata.generation ?? 0) + 1;
    live.metadata.resourceVersion = String(++this.#version);
    this.#objects.set(`${kind}/${name}`, live);
    return undefined;
  }

  #empty(kind: Kind, name: string): Wire {
    const object: Wire = {
      metadata: { name, namespace: NAMESPACE, uid: randomUUID(), creationTimestamp: now() },
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
      void this.#kubelet.stop(object, grace_s ?? object.spec.terminationGracePeriodSeconds);
      this.#reconcile();
      return;
    }
    this.#objects.delete(`${kind}/${object.metadata.name}`);
    // The garbage collector.
    for (const dependent of ["deployments", "services", "secrets", "pods"] as const) {
      for (const owned of this.#all(dependent)) {
        const owners: Wire[] = owned.metadata.ownerReferences ?? [];
        if (owners.some(({ uid }) => uid === object.metadata.uid)) this.#delete(dependent, owned);
      }
    }
  }

  /** The controllers of Deployments and ReplicaSets. */
  #reconcile(): void {
    for (const deployment of this.#all("deployments")) {
      const { uid, name } = deployment.metadata;
      const pods = this.#all("pods").filter(
        ({ metadata }) => !metadata.deletionTimestamp && metadata.ownerReferences[0].uid === uid,
      );
      const { replicas, template, paused } = deployment.spec;
      deployment.status = { observedGeneration: deployment.metadata.generation };
      // A paused Deployment gets no ReplicaSet.
      if (paused && pods.length === 0) continue;
      for (const pod of pods.slice(replicas)) this.#delete("pods", pod);
      for (let count = pods.length; count < replicas; count++) {
        const pod: Wire = structuredClone(template);
        pod.metadata = {
          ...pod.metadata,
          name: `${name}-${randomUUID().slice(0, 5)}`,
          namespace: NAMESPACE,
          uid: randomUUID(),
          creationTimestamp: now(),
          ownerReferences: [{ kind: "Deployment", name, uid }],
        };
        pod.status = { phase: "Pending" };
        this.#objects.set(`pods/${pod.metadata.name}`, pod);
        void this.#kubelet.start(pod);
      }
    }
  }
}

const now = (): string => new Date().toISOString();

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
