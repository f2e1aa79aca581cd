import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream";
import { text } from "node:stream/consumers";
import { freePort } from "../process.ts";
import { until } from "../until.ts";
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

const ADMIN = "token-of-the-administrator";
const NODE = "node-1";
/** Instances listen on the addresses of their Services. The API server takes the first one. */
const SERVICES = `127.${1 + (process.pid % 200)}.${1 + ((process.pid >> 8) % 200)}.0/24`;
const START_MS = 60_000;

/** Starts etcd, kube-apiserver and kube-controller-manager, and in this process the kubelet of the only node. */
export async function startApiServer(programs: string): Promise<ApiServer> {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-kubernetes-"));
  const children: ChildProcess[] = [];
  const start = (name: string, flags: Record<string, string | number | boolean>) => {
    const log = openSync(join(folder, `${name}.log`), "a");
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    children.push(spawn(join(programs, name), args, { stdio: ["ignore", log, log] }));
  };
  const inFolder = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const etcd = `http://127.0.0.1:${await freePort()}`;
  const peer = `http://127.0.0.1:${await freePort()}`;
  start("etcd", {
    "data-dir": join(folder, "etcd"),
    "listen-client-urls": etcd,
    "advertise-client-urls": etcd,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": `default=${peer}`,
  });
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = inFolder("service-accounts.key", privateKey.export({ type: "pkcs1", format: "pem" }) as string);
  const port = await freePort();
  start("kube-apiserver", {
    "etcd-servers": etcd,
    "secure-port": port,
    "bind-address": "127.0.0.1",
    // An address of no machine: the API server refuses loopback here, and nothing connects to it.
    "advertise-address": "192.0.2.1",
    "cert-dir": folder,
    "service-account-issuer": "https://kubernetes",
    "service-account-signing-key-file": key,
    "service-account-key-file": key,
    "token-auth-file": inFolder("tokens.csv", `${ADMIN},admin,admin,"system:masters"\n${TOKEN},${USER},service\n`),
    "authorization-mode": "RBAC",
    "service-cluster-ip-range": SERVICES,
    "disable-admission-plugins": "ServiceAccount",
  });
  const cluster = new ApiServer(folder, port, children);
  try {
    await cluster.open();
  } catch (error) {
    const log = readFileSync(join(folder, "kube-apiserver.log"), "utf8").slice(-2_000);
    await cluster.stop();
    throw new Error(`Kubernetes did not start: ${log}`, { cause: error });
  }
  start("kube-controller-manager", {
    kubeconfig: inFolder("controllers.json", kubeconfigFor(`https://127.0.0.1:${port}`).replace(TOKEN, ADMIN)),
    "leader-elect": false,
    // Without ports, which clusters of other test files take, too.
    port: 0,
    "secure-port": 0,
    controllers: "deployment,replicaset,endpoint,garbagecollector",
    "service-account-private-key-file": key,
  });
  return cluster;
}

interface Call {
  body?: object;
  type?: string;
  query?: Record<string, string>;
}

/** See TestCluster. Its user reaches the API server through a proxy, which reports the requests. */
export class ApiServer implements TestCluster {
  readonly kubeconfig: string;
  readonly images = new Map<string, string>();
  onRequest: (change: string) => void | Promise<void> = () => undefined;
  readonly #folder: string;
  readonly #port: number;
  readonly #children: ChildProcess[];
  /** Without reused connections, which the API server closes at any time. */
  readonly #agent = new https.Agent({ rejectUnauthorized: false });
  readonly #kubelet: Kubelet;
  readonly #servers: (http.Server | https.Server)[] = [];
  #isOver = false;

  constructor(folder: string, port: number, children: ChildProcess[]) {
    this.#folder = folder;
    this.#port = port;
    this.#children = children;
    this.kubeconfig = join(folder, "kubeconfig.json");
    this.#kubelet = new Kubelet({
      images: this.images,
      all: (kind) => this.all(kind),
      setStatus: async ({ metadata: { name } }, status) => {
        const body = { status };
        await this.#call("PATCH", "pods", `${name}/status`, { body, type: "application/merge-patch+json" });
      },
      onStopped: ({ metadata: { name, uid } }) => this.#remove(name, uid),
    });
  }

  async open(): Promise<void> {
    const isReady = () =>
      this.#send("GET", "/readyz", {}).then(
        ({ statusCode }) => statusCode === 200,
        () => false,
      );
    await until("the API server is ready", isReady, START_MS);
    await this.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
    const kubelet_port = await this.#listen(this.#kubeletServer());
    await this.apply({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: NODE },
      status: {
        addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
        daemonEndpoints: { kubeletEndpoint: { Port: kubelet_port } },
      },
    });
    await this.grant(RULES);
    writeFileSync(this.kubeconfig, kubeconfigFor(`http://127.0.0.1:${await this.#listen(this.#proxy())}`));
    void this.#watchPods();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#kubelet.close();
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
    this.#agent.destroy();
    for (const child of this.#children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async grant(rules: readonly Rule[]): Promise<void> {
    const apiVersion = "rbac.authorization.k8s.io/v1";
    const metadata = { name: "threadmill", namespace: NAMESPACE };
    const valid = rules.filter(({ verbs }) => verbs.length > 0);
    await this.apply({ apiVersion, kind: "Role", metadata, rules: valid });
    await this.apply({
      ...{ apiVersion, kind: "RoleBinding", metadata },
      subjects: [{ kind: "User", name: USER, apiGroup: "rbac.authorization.k8s.io" }],
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "threadmill" },
    });
    // The authorizer reads roles from a cache.
    const wanted = RULES.flatMap(({ apiGroups: [group], resources: [name = ""], verbs }) =>
      verbs.map((verb) => {
        const isGranted = rules.some((rule) => rule.resources[0] === name && rule.verbs.includes(verb));
        const [resource, subresource] = name.split("/");
        return { attributes: { namespace: NAMESPACE, group, resource, subresource, verb }, isGranted };
      }),
    );
    await until("the rules are in force", async () => {
      const found = await Promise.all(
        wanted.map(async ({ attributes, isGranted }) => {
          const { status } = await this.#create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            apiVersion: "authorization.k8s.io/v1",
            kind: "SubjectAccessReview",
            spec: { user: USER, resourceAttributes: attributes },
          });
          return status.allowed === isGranted;
        }),
      );
      return found.every(Boolean);
    });
  }

  async all(kind: Kind | "endpoints"): Promise<Wire[]> {
    return (await this.#call("GET", kind, "", {})).items;
  }

  async change(kind: Kind, name: string, manager: string, body: object): Promise<void> {
    const type = "application/merge-patch+json";
    await this.#call("PATCH", kind, name, { body, type, query: { fieldManager: manager } });
  }

  evict = ({ metadata: { name, uid } }: Wire): Promise<void> => this.#remove(name, uid);

  async #remove(name: string, uid: string): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0, preconditions: { uid } };
    await this.#call("DELETE", "pods", name, { body }).catch(ignoreMissing);
  }

  #find = (kind: Kind, name: string): Promise<Wire | undefined> =>
    this.#call("GET", kind, name, {}).catch(ignoreMissing);

  /**
   * Creates or changes an object of any kind by server-side apply.
   *
   * @throws an error with the status of the response, 404 for a kind that this version does not have
   */
  apply(body: Wire): Promise<Wire> {
    const { apiVersion, kind, metadata } = body;
    const folder = `/${apiVersion === "v1" ? "api" : "apis"}/${apiVersion}`;
    const namespace = metadata.namespace ? `/namespaces/${metadata.namespace}` : "";
    const query = { fieldManager: "test", force: "true" };
    const path = `${folder}${namespace}/${kind.toLowerCase()}s/${metadata.name}`;
    return this.#json("PATCH", path, { body, type: "application/apply-patch+yaml", query });
  }

  #call(method: string, kind: string, name: string, call: Call): Promise<Wire> {
    const path = `${kind === "deployments" ? "/apis/apps/v1" : "/api/v1"}/namespaces/${NAMESPACE}/${kind}${name === "" ? "" : `/${name}`}`;
    return this.#json(method, path, call);
  }

  #create = (path: string, body: object): Promise<Wire> => this.#json("POST", path, { body });

  async #json(method: string, path: string, call: Call): Promise<Wire> {
    const response = await this.#send(method, path, call);
    const body = await text(response);
    if ((response.statusCode ?? 0) < 300) return JSON.parse(body);
    throw Object.assign(new Error(`${method} ${path}: ${body}`), { status: response.statusCode });
  }

  /** As the administrator. */
  async #send(method: string, path: string, { body, type, query = {} }: Call): Promise<http.IncomingMessage> {
    const payload = body && JSON.stringify(body);
    // For DELETE, Node.js sends no length by itself.
    const length = payload && {
      "content-type": type ?? "application/json",
      "content-length": Buffer.byteLength(payload),
    };
    const headers = { authorization: `Bearer ${ADMIN}`, ...length };
    const target = `https://127.0.0.1:${this.#port}${path}?${new URLSearchParams(query)}`;
    const request = https.request(target, { method, headers, agent: this.#agent });
    // After the response it has no other listener: the API server ends watches when it stops.
    request.on("error", () => undefined);
    request.end(payload);
    const [response] = await once(request, "response");
    return response;
  }

  async #listen(server: http.Server | https.Server): Promise<number> {
    this.#servers.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as { port: number }).port;
  }

  /** The way of the service to the API server. */
  #proxy(): http.Server {
    return http.createServer(async (request, response) => {
      try {
        const { method, url = "", headers } = request;
        const [, kind, name] = /\/namespaces\/[^/]+\/(\w+)(?:\/([^/?]+))?/.exec(url) ?? [];
        if (method !== "GET") await this.onRequest(`${method} ${kind}/${name}`);
        const target = `https://127.0.0.1:${this.#port}${url}`;
        const forwarded = https.request(target, { method, headers, agent: this.#agent });
        forwarded.on("error", () => undefined);
        pipeline(request, forwarded, () => undefined);
        const [answer] = (await once(forwarded, "response")) as [http.IncomingMessage];
        response.writeHead(answer.statusCode as number, answer.headers);
        pipeline(answer, response, () => undefined);
      } catch {
        request.socket.destroy();
      }
    });
  }

  /** What the API server asks of the node: the logs of containers. */
  #kubeletServer(): https.Server {
    const tls = {
      cert: readFileSync(join(this.#folder, "apiserver.crt")),
      key: readFileSync(join(this.#folder, "apiserver.key")),
    };
    return https.createServer(tls, async ({ url = "" }, response) => {
      const { pathname, searchParams } = new URL(url, "https://node");
      const fail = (status: number, message: string) => void response.writeHead(status).end(message);
      const [, name] = /^\/containerLogs\/[^/]+\/([^/]+)\//.exec(pathname) ?? [];
      const pod = name && (await this.#find("pods", name));
      if (!pod) return fail(404, `pod "${name}" not found`);
      await this.#kubelet.log(pod, searchParams, response, fail);
    });
  }

  /** Schedules, starts and stops pods until the end. */
  async #watchPods(): Promise<void> {
    const stopping = new Set<string>();
    const onEvent = async ({ type, object: pod }: { type: string; object: Wire }) => {
      const { name, uid, deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata ?? {};
      if (type === "DELETED") await this.#kubelet.stop(pod, 0);
      else if (deletionTimestamp !== undefined) {
        if (stopping.has(uid)) return;
        stopping.add(uid);
        await this.#kubelet.stop(pod, deletionGracePeriodSeconds);
      } else if (pod.spec.nodeName === undefined) {
        const target = { apiVersion: "v1", kind: "Node", name: NODE };
        const binding = { apiVersion: "v1", kind: "Binding", metadata: { name }, target };
        await this.#json("POST", `/api/v1/namespaces/${NAMESPACE}/pods/${name}/binding`, { body: binding });
      } else await this.#kubelet.start(pod);
    };
    while (!this.#isOver) {
      try {
        const path = `/api/v1/namespaces/${NAMESPACE}/pods`;
        const events = await this.#send("GET", path, { query: { watch: "true" } });
        // A pod that has gone meanwhile.
        for await (const line of createInterface({ input: events }))
          void onEvent(JSON.parse(line)).catch(() => undefined);
      } catch (error) {
        if (!this.#isOver) throw error;
      }
    }
  }
}

const ignoreMissing = (error: { status?: number }): undefined => {
  if (error.status !== 404 && error.status !== 409) throw error;
};
