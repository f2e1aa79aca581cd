import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Database } from "../../../platform/database/database.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { deploymentDatabases } from "../deployment-data.ts";
import { type DeployDriver, DeployError } from "../driver.ts";
import { requireListed } from "../image-name.ts";
import { Cluster, ClusterUnavailableError } from "./cluster.ts";
import { Instances } from "./instances.ts";

export interface KubernetesDriverOptions {
  /** The driver stores the positions of logs in the subfolder `control/kubernetes`. */
  data_dir: string;
  /** Path of a kubeconfig. If undefined, the service uses the service account of its own pod. */
  kubeconfig: string | undefined;
  kubernetes_namespace: string | undefined;
  kubernetes_pull_secrets: readonly string[];
  kubernetes_service_account: string | undefined;
  docker_registries: readonly string[];
  /** Marks the objects of this driver in the namespace. Default: an ID of the service's database. */
  service_id?: string;
  database: Database;
  /** URL of the service's Postgres. Without it, the driver refuses all deployments. */
  database_url: string | undefined;
  log: Log;
}

/** Runs deployments of images on Kubernetes. Connects to the API server on first use, so the service starts without it. */
export function createKubernetesDriver(options: KubernetesDriverOptions): DeployDriver {
  const { database, database_url, docker_registries, log } = options;
  const databases = deploymentDatabases(database, database_url);
  const cluster = new Cluster({ kubeconfig: options.kubeconfig, namespace: options.kubernetes_namespace });
  const instances = new Instances({
    cluster,
    service_id: options.service_id ?? serviceIdOf(database_url),
    pull_secrets: options.kubernetes_pull_secrets,
    service_account: options.kubernetes_service_account,
    positions: join(options.data_dir, "control", "kubernetes", "positions"),
    databases,
    log,
  });
  return {
    kind: "kubernetes",
    // The nodes pull the image. Without access to the registry, the driver cannot resolve a tag to a digest.
    async pin({ image }) {
      requireListed(image, docker_registries);
      await cluster.namespace().catch(toDeployError);
      return image;
    },
    ensure: (spec) => instances.ensure(spec),
    probe: (ref) => instances.probe(ref),
    stop: (ref, { grace_ms }) => instances.stop(ref, grace_ms),
    list: () => instances.list(),
    async remove({ deployment_id }) {
      for (const ref of await instances.list(deployment_id)) await instances.stop(ref, 0);
      await databases.drop(deployment_id);
    },
    close: () => instances.close(),
  };
}

const toDeployError = (error: unknown): never => {
  throw error instanceof ClusterUnavailableError ? new DeployError(error.message) : error;
};

/**
 * Returns the ID that marks the objects of this service in a namespace that other services may also use. All processes of a service have
 * the same database, but not the same data folder. If the address of the database changes, objects are still found by their names.
 */
function serviceIdOf(database_url: string | undefined): string {
  const { host, pathname } = new URL(database_url ?? "postgres://none/");
  return createHash("sha256").update(`${host}${pathname}`).digest("hex").slice(0, 32);
}
