import type { V1Deployment, V1Secret, V1Service } from "@kubernetes/client-node";
import type { InstanceRef, InstanceSpec } from "../driver.ts";
import { CONTAINER_PORT, DATA, imageEnvironment, limitsFor, TMPFS } from "../image-environment.ts";

export const LABELS = {
  service: "threadmill.service",
  instance: "threadmill.instance",
  deployment: "threadmill.deployment",
  revision: "threadmill.revision",
} as const;

export const CONTAINER = "agent";

/** UID that most systems reserve for an unprivileged user. The driver does not know the user of the image, which could be root. */
const UNPRIVILEGED_UID = 65534;
/** The longest grace period of the reconciler. A deletion can shorten it, but not extend it. */
const MAX_GRACE_S = 45;
/** The control plane has its own deadlines, which are shorter. This limit only has to enable the liveness probe at some time. */
const MAX_START_S = 1_200;
/** Requests without which the scheduler would place any number of instances on a node. */
const CPU_REQUEST = "100m";
const MEMORY_REQUEST_MB = 256;

export interface ManifestInput {
  spec: InstanceSpec;
  namespace: string;
  service_id: string;
  database_url: string;
  pull_secrets: readonly string[];
  /** Kubernetes service account of the pods. If undefined, pods have no token for the Kubernetes API. */
  service_account: string | undefined;
}

type Named<T> = T & { metadata: { name: string; namespace: string } };

/** Returns the name of all objects of an instance. */
export const objectName = (instance_id: string): string => `threadmill-${instance_id}`;

export const selectorOf = (kind: keyof typeof LABELS, id: string): string => `${LABELS[kind]}=${id}`;

function metadataOf({ spec, namespace, service_id }: ManifestInput) {
  return {
    name: objectName(spec.instance_id),
    namespace,
    labels: {
      "app.kubernetes.io/managed-by": "threadmill",
      [LABELS.service]: service_id,
      [LABELS.instance]: spec.instance_id,
      [LABELS.deployment]: spec.deployment_id,
      [LABELS.revision]: spec.revision_id,
    },
  };
}

/** @param paused Whether Kubernetes creates no pod yet. Unlike `replicas: 0`, this does not stop a pod that another process has started. */
export function deploymentManifest(input: ManifestInput, { paused }: { paused: boolean }): Named<V1Deployment> {
  const { spec, pull_secrets, service_account } = input;
  const metadata = metadataOf(input);
  const probe = { httpGet: { path: "/ok", port: "http" } };
  const { cpus, memory_mb } = limitsFor(spec);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: {
      ...(paused && { paused }),
      replicas: 1,
      revisionHistoryLimit: 0,
      // Two pods of one instance would share its address.
      strategy: { type: "Recreate" },
      selector: { matchLabels: { [LABELS.instance]: spec.instance_id } },
      template: {
        metadata: { labels: metadata.labels },
        spec: {
          ...(service_account === undefined
            ? { automountServiceAccountToken: false }
            : { serviceAccountName: service_account }),
          ...(pull_secrets.length > 0 && { imagePullSecrets: pull_secrets.map((name) => ({ name })) }),
          enableServiceLinks: false,
          // As process 1, a program would ignore signals without a handler, and would have to reap its orphans.
          shareProcessNamespace: true,
          terminationGracePeriodSeconds: MAX_GRACE_S,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: UNPRIVILEGED_UID,
            runAsGroup: UNPRIVILEGED_UID,
            fsGroup: UNPRIVILEGED_UID,
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers: [
            {
              name: CONTAINER,
              image: spec.artifact,
              // The registry checks the pull secrets at each start, even if the node has the image.
              imagePullPolicy: "Always",
              ports: [{ name: "http", containerPort: CONTAINER_PORT, protocol: "TCP" }],
              envFrom: [{ secretRef: { name: metadata.name } }],
              resources: {
                limits: { cpu: String(cpus), memory: `${memory_mb}Mi` },
                requests: { cpu: CPU_REQUEST, memory: `${Math.min(memory_mb, MEMORY_REQUEST_MB)}Mi` },
              },
              startupProbe: { ...probe, periodSeconds: 1, timeoutSeconds: 2, failureThreshold: MAX_START_S },
              readinessProbe: { ...probe, periodSeconds: 5, timeoutSeconds: 2, failureThreshold: 3 },
              livenessProbe: { ...probe, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ["ALL"] },
              },
              volumeMounts: [
                { name: "data", mountPath: DATA },
                { name: "tmp", mountPath: TMPFS },
              ],
            },
          ],
          volumes: [
            { name: "data", emptyDir: {} },
            { name: "tmp", emptyDir: {} },
          ],
        },
      },
    },
  };
}

/** @param owner the Deployment; Kubernetes deletes the Secret and the Service with it */
export function secretManifest(input: ManifestInput, owner: V1Deployment): Named<V1Secret> {
  const { spec, database_url } = input;
  const environment = imageEnvironment({
    spec,
    limits: limitsFor(spec),
    database_url,
    home: TMPFS,
    host: "0.0.0.0",
    port: CONTAINER_PORT,
  });
  const encoded = Object.entries(environment).map(([name, value]) => [name, Buffer.from(value).toString("base64")]);
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...metadataOf(input), ownerReferences: [ownerOf(owner)] },
    type: "Opaque",
    data: Object.fromEntries(encoded),
  };
}

export function serviceManifest(input: ManifestInput, owner: V1Deployment): Named<V1Service> {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...metadataOf(input), ownerReferences: [ownerOf(owner)] },
    spec: {
      type: "ClusterIP",
      selector: { [LABELS.instance]: input.spec.instance_id },
      // The control plane decides when an instance is ready, and drains it while it terminates.
      publishNotReadyAddresses: true,
      ports: [{ name: "http", port: CONTAINER_PORT, targetPort: "http", protocol: "TCP" }],
    },
  };
}

const ownerOf = ({ metadata }: V1Deployment) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  name: metadata?.name ?? "",
  uid: metadata?.uid ?? "",
});

/** Returns the reference of an instance. The address is empty if its Service does not exist yet. */
export function refFrom(
  { metadata }: Pick<V1Deployment, "metadata">,
  service: V1Service | undefined,
  handle: string,
): InstanceRef {
  const label = (name: keyof typeof LABELS) => metadata?.labels?.[LABELS[name]] ?? "";
  const ip = service?.spec?.clusterIP;
  return {
    instance_id: label("instance"),
    deployment_id: label("deployment"),
    revision_id: label("revision"),
    handle,
    address: ip ? `http://${ip.includes(":") ? `[${ip}]` : ip}:${CONTAINER_PORT}` : "",
  };
}
