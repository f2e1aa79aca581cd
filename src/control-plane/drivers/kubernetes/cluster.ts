import { once } from "node:events";
import http, { type IncomingMessage, type RequestOptions } from "node:http";
import https from "node:https";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { KubeConfig, KubernetesObject, V1Deployment, V1Pod, V1Secret, V1Service } from "@kubernetes/client-node";
import { DeployError } from "../driver.ts";

const RESPONSE_TIMEOUT_MS = 30_000;

/** Owner of the fields that this service sets. Kubernetes refuses changes to fields of other owners. */
const FIELD_MANAGER = "threadmill";

interface Objects {
  deployments: V1Deployment;
  services: V1Service;
  secrets: V1Secret;
  pods: V1Pod;
}

const API_GROUPS: Record<keyof Objects, string> = {
  deployments: "/apis/apps/v1",
  services: "/api/v1",
  secrets: "/api/v1",
  pods: "/api/v1",
};

/** The API server could not be reached, or the credentials for it could not be read. */
export class ClusterUnavailableError extends Error {}

/** An error response of the API server. */
class ClusterError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

interface ClusterOptions {
  /** Path of a kubeconfig. If undefined, the service uses the service account of its own pod. */
  kubeconfig: string | undefined;
  /** If undefined, the namespace of the kubeconfig's context or of the service's own pod. */
  namespace: string | undefined;
}

interface Call {
  method?: "GET" | "PATCH" | "DELETE";
  query?: Record<string, string | number | boolean>;
  body?: object;
}

/** Client of one namespace of a Kubernetes API server. The client library, which reads credentials, is loaded on the first call. */
export class Cluster {
  readonly #options: ClusterOptions;
  #config: Promise<KubeConfig> | undefined;

  constructor(options: ClusterOptions) {
    this.#options = options;
  }

  async namespace(): Promise<string> {
    const config = await this.#open();
    return this.#options.namespace ?? config.getContextObject(config.getCurrentContext())?.namespace ?? "default";
  }

  find<K extends keyof Objects>(kind: K, name: string): Promise<Objects[K] | undefined> {
    return undefinedIfMissing(this.#json<Objects[K]>(kind, name, {}));
  }

  async list<K extends keyof Objects>(kind: K, labelSelector: string): Promise<Objects[K][]> {
    return (await this.#json<{ items: Objects[K][] }>(kind, "", { query: { labelSelector } })).items;
  }

  /**
   * Creates or changes an object by server-side apply.
   *
   * @throws DeployError when another field manager has set one of its fields to another value
   */
  async apply<K extends keyof Objects>(kind: K, object: Objects[K] & { metadata: { name: string } }) {
    try {
      const query = { fieldManager: FIELD_MANAGER };
      return await this.#json<Objects[K]>(kind, object.metadata.name, { method: "PATCH", query, body: object });
    } catch (error) {
      if (!(error instanceof ClusterError) || error.status !== 409) throw error;
      throw new DeployError(
        `The ${object.kind} ${object.metadata.name} was changed by another program: ${error.message} Delete the object so that this service can create it again.`,
      );
    }
  }

  /** Does nothing if the object does not exist. Kubernetes deletes the objects that it owns in the background. */
  async delete(kind: keyof Objects, name: string, gracePeriodSeconds?: number): Promise<void> {
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      propagationPolicy: "Background",
      ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
    };
    await undefinedIfMissing(this.#json(kind, name, { method: "DELETE", body }));
  }

  /** Streams the log of a container. Returns undefined if the container does not exist or has not started. */
  log(pod: string, query: Record<string, string | number | boolean>): Promise<Readable | undefined> {
    return undefinedOnStatus(this.#send("pods", `${pod}/log`, { query }), 400, 404);
  }

  async #json<T extends KubernetesObject | object>(kind: keyof Objects, name: string, call: Call): Promise<T> {
    return JSON.parse(await text(await this.#send(kind, name, call))) as T;
  }

  /** @throws DeployError when an RBAC rule is missing; ClusterError; ClusterUnavailableError */
  async #send(kind: keyof Objects, name: string, call: Call): Promise<IncomingMessage> {
    const { method = "GET", query = {}, body } = call;
    const config = await this.#open();
    const server = config.getCurrentCluster()?.server ?? "";
    const path = `${API_GROUPS[kind]}/namespaces/${await this.namespace()}/${kind}${name === "" ? "" : `/${name}`}`;
    const url = new URL(`${server.replace(/\/$/, "")}${path}`);
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, String(value));
    const type = method === "PATCH" ? "application/apply-patch+yaml" : "application/json";
    const payload = body && JSON.stringify(body);
    // For DELETE, Node.js sends no length by itself.
    const length = payload && { "content-type": type, "content-length": Buffer.byteLength(payload) };
    const options: RequestOptions = { method, headers: { accept: "application/json", ...length } };
    let response: IncomingMessage;
    try {
      await config.applyToHTTPSOptions(options as https.RequestOptions);
      const request = (url.protocol === "http:" ? http : https).request(url, agentFor(url, options));
      // After the response has begun, its own error reports a lost connection; without a listener, that of the request ends the process.
      request.on("error", () => undefined);
      const timer = setTimeout(() => request.destroy(new Error("no response")), RESPONSE_TIMEOUT_MS);
      request.end(payload);
      [response] = (await once(request, "response").finally(() => clearTimeout(timer))) as [IncomingMessage];
    } catch (error) {
      throw new ClusterUnavailableError(
        `Cannot connect to the Kubernetes API at ${url.origin} (${(error as Error).message}). Check that the API server is reachable. Also check ${source(this.#options)}.`,
      );
    }
    const { statusCode: status = 0 } = response;
    if (status < 300) return response;
    throw failureOf(status, await text(response));
  }

  #open(): Promise<KubeConfig> {
    this.#config ??= this.#load().catch((error: Error) => {
      this.#config = undefined;
      throw new ClusterUnavailableError(
        `The credentials for the Kubernetes API could not be read (${error.message}): check ${source(this.#options)}.`,
      );
    });
    return this.#config;
  }

  async #load(): Promise<KubeConfig> {
    const { KubeConfig } = await import("@kubernetes/client-node");
    const config = new KubeConfig();
    if (this.#options.kubeconfig !== undefined) config.loadFromFile(this.#options.kubeconfig);
    else config.loadFromCluster();
    return config;
  }
}

const source = ({ kubeconfig }: ClusterOptions): string =>
  kubeconfig === undefined
    ? "that this service runs in a pod with a service account, or set THREADMILL_KUBECONFIG"
    : `THREADMILL_KUBECONFIG (${kubeconfig})`;

/** The library sets an agent for https, which http requests do not accept. */
const agentFor = ({ protocol }: URL, options: RequestOptions): RequestOptions =>
  protocol === "http:" ? { ...options, agent: http.globalAgent } : options;

const DENIED = /User ".*?" cannot (?<verb>\S+) resource "(?<resource>.*?)" in API group "(?<group>.*?)"/;
/** When server-side apply may not create an object, the message of the API server ends here. */
const CREATION_DENIED = /^(?<resource>\w+)\.?(?<group>\S*) "\S+" is forbidden:\s*$/;

function failureOf(status: number, body: string): Error {
  const message = messageIn(body);
  const denied = (DENIED.exec(message) ?? CREATION_DENIED.exec(message))?.groups;
  if (status === 403 && denied) {
    const { group, resource, verb = "create" } = denied;
    const rule = `{apiGroups: ["${group}"], resources: ["${resource}"], verbs: ["${verb}"]}`;
    return new DeployError(
      `The Kubernetes API denied a request: ${message.replace(/:\s*$/, "")}. Add this rule to the Kubernetes Role of this service: ${rule}.`,
    );
  }
  // Invalid objects, and objects that a quota or an admission policy refuses.
  if (status === 403 || status === 422)
    return new DeployError(`The Kubernetes API refused a request: ${message || `status ${status}`}.`);
  return new ClusterError(status, `${message || `The Kubernetes API returned status ${status}`}.`);
}

function messageIn(body: string): string {
  try {
    return String((JSON.parse(body) as { message?: string }).message ?? "").replace(/\.$/, "");
  } catch {
    return body.slice(0, 500);
  }
}

const undefinedIfMissing = <T>(call: Promise<T>): Promise<T | undefined> => undefinedOnStatus(call, 404);

async function undefinedOnStatus<T>(call: Promise<T>, ...statuses: readonly number[]): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ClusterError && statuses.includes(error.status)) return undefined;
    throw error;
  }
}
