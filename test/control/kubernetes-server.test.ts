import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadAllYaml } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEPLOY } from "../support/compose-file.ts";
import { instanceSpec } from "../support/instance-spec.ts";
import { type ApiServer, startApiServer } from "../support/kubernetes/api-server.ts";
import type { Wire } from "../support/kubernetes/cluster.ts";
import { programs } from "../support/kubernetes/start.ts";
import { until } from "../support/until.ts";
import { type KubernetesWorld, openKubernetesWorld } from "./kubernetes-world.ts";

/** What only an API server can show. `npm run test:kubernetes` executes it. */
describe.skipIf(programs === undefined)("the API server of Kubernetes", () => {
  let cluster: ApiServer;
  let world: KubernetesWorld;
  beforeAll(async () => {
    cluster = await startApiServer(programs as string);
    world = await openKubernetesWorld(cluster);
  });
  afterAll(() => world.close());

  it("accepts the objects of deploy/kubernetes", async () => {
    const folder = join(DEPLOY, "kubernetes");
    const objects: Wire[] = readdirSync(folder)
      .filter((name) => name !== "kustomization.yaml")
      .flatMap((name) => loadAllYaml(readFileSync(join(folder, name), "utf8")))
      .sort((a: Wire, b: Wire) => Number(b.kind === "Namespace") - Number(a.kind === "Namespace"));
    const failures: string[] = [];
    for (const object of objects)
      await cluster
        .apply(object)
        .catch(({ status, message }) => failures.push(`${object.kind}: ${status === 404 ? "unknown" : message}`));
    // Newer than Kubernetes 1.20, and of an extension.
    expect(failures).toEqual(["PodDisruptionBudget: unknown", "ScaledObject: unknown", "PodDisruptionBudget: unknown"]);
  });

  it("keeps a pod in the addresses of its Service while it terminates", async () => {
    const ref = await world.driver.ensure(instanceSpec({ artifact: "localhost/agents/nobody-has:1" }));
    const [pod] = ref.handle.split("/");
    const addresses = async (): Promise<string[]> => {
      const endpoints = await cluster.all("endpoints");
      const own = endpoints.find(({ metadata }) => metadata.name === `threadmill-${ref.instance_id}`);
      const subsets: Wire[] = own?.subsets ?? [];
      return subsets.flatMap(({ addresses = [] }) => addresses.map(({ targetRef }: Wire) => targetRef.name));
    };
    await until("the pod has an address", async () => (await addresses()).includes(pod as string));
    // The pod cannot be removed while it has a finalizer.
    await cluster.change("pods", pod as string, "test", { metadata: { finalizers: ["example.com/hold"] } });
    await cluster.evict((await cluster.all("pods")).find(({ metadata }) => metadata.name === pod));
    await until("another pod has an address", async () => (await addresses()).length === 2);
    expect(await addresses()).toContain(pod);
    await cluster.change("pods", pod as string, "test", { metadata: { finalizers: null } });
    await until("the pod is removed", async () => (await addresses()).length === 1);
    await world.driver.stop(ref, { grace_ms: 0 });
  });
});
