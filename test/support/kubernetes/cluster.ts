// biome-ignore lint/suspicious/noExplicitAny: objects of the API, of any kind
export type Wire = any;

export type Kind = "deployments" | "services" | "secrets" | "pods";

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

/** The user of the service, and the namespace that it may use. */
export const NAMESPACE = "agents";
export const USER = `system:serviceaccount:${NAMESPACE}:threadmill`;
export const TOKEN = "token-of-the-service-account";

/** A cluster with one node, whose pods are processes of this machine. */
export interface TestCluster {
  /** Path of a kubeconfig with the user above. */
  readonly kubeconfig: string;
  /** Folders with a langgraph.json by the name of their image. */
  readonly images: Map<string, string>;
  /** Called with the method, kind and name of each request of the user that changes something; what it throws ends the connection. */
  onRequest: (change: string) => void | Promise<void>;
  /** Grants the user these rules, and no others. */
  grant(rules: readonly Rule[]): Promise<void>;
  all(kind: Kind): Promise<Wire[]>;
  /** A change by another program, such as kubectl, which takes the ownership of the fields. */
  change(kind: Kind, name: string, manager: string, config: object): Promise<void>;
  /** As the drain of a node does, which also waits for nothing. */
  evict(pod: Wire): Promise<void>;
  stop(): Promise<void>;
}

/** A kubeconfig for an API server that is reached without TLS. */
export const kubeconfigFor = (server: string): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "threadmill", user: { token: TOKEN } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "threadmill", namespace: NAMESPACE } }],
    "current-context": "test",
  });
