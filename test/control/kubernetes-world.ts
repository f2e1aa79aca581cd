import type { DeployDriver } from "../../src/control-plane/drivers/driver.ts";
import {
  createKubernetesDriver,
  type KubernetesDriverOptions,
} from "../../src/control-plane/drivers/kubernetes/driver.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createDatabase, type TestDatabase } from "../support/databases.ts";
import type { TestCluster } from "../support/kubernetes/cluster.ts";
import { startCluster } from "../support/kubernetes/start.ts";
import { openOn } from "../support/storage.ts";
import { PROJECT, temporaryFolder, writeFiles } from "./deployed-project.ts";

const BROKEN = { ...PROJECT, "agent.mjs": "import 'a-package-that-nobody-has'; export const graph = 1;" };

/** A cluster, and drivers of a service with a database of its own. */
export interface KubernetesWorld {
  cluster: TestCluster;
  driver: DeployDriver;
  at: TestDatabase;
  /** Another process of the service, or another service. */
  open(more?: Partial<KubernetesDriverOptions>): DeployDriver;
  close(): Promise<void>;
}

/** @param started the cluster, which ends with the world; undefined starts one */
export async function openKubernetesWorld(started?: TestCluster): Promise<KubernetesWorld> {
  const cluster = started ?? (await startCluster());
  cluster.images.set("localhost/agents/good:1", writeFiles(temporaryFolder(), PROJECT));
  cluster.images.set("localhost/agents/broken:1", writeFiles(temporaryFolder(), BROKEN));
  const at = await createDatabase("postgres");
  const database = openOn(at);
  const drivers: DeployDriver[] = [];
  const open = (more: Partial<KubernetesDriverOptions> = {}) => {
    const driver = createKubernetesDriver({
      data_dir: at.data_dir,
      database,
      database_url: at.url,
      kubeconfig: cluster.kubeconfig,
      kubernetes_namespace: undefined,
      kubernetes_pull_secrets: [],
      kubernetes_service_account: undefined,
      docker_registries: ["localhost"],
      log: createLog("silent"),
      ...more,
    });
    drivers.push(driver);
    return driver;
  };
  return {
    cluster,
    driver: open(),
    at,
    open,
    async close() {
      for (const driver of drivers) await driver.close?.();
      await cluster.stop();
      await database.close();
      await at.drop();
    },
  };
}
