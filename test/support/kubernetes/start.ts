import { KubernetesApi } from "./api-double.ts";
import { startApiServer } from "./api-server.ts";
import type { TestCluster } from "./cluster.ts";

/** Folder with the programs of Kubernetes (test/control/kubernetes/build-server.sh), which `npm run test:kubernetes` sets. */
export const programs = process.env.KUBERNETES_PROGRAMS;

/** Instances listen on loopback addresses of their own, which only Linux has without configuration. */
export const kubernetesMissing = (): boolean => process.platform !== "linux";

export const startCluster = (): Promise<TestCluster> =>
  programs === undefined ? KubernetesApi.start() : startApiServer(programs);
