import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DeployDriver, InstanceRef, InstanceSpec } from "../../src/control-plane/drivers/driver.ts";
import { instanceSpec } from "../support/instance-spec.ts";
import { RULES } from "../support/kubernetes/cluster.ts";
import { kubernetesMissing } from "../support/kubernetes/start.ts";
import { until } from "../support/until.ts";
import { answersOk, ask } from "./driver-conformance.ts";
import { type KubernetesWorld, openKubernetesWorld } from "./kubernetes-world.ts";

const KINDS = ["deployments", "services", "secrets", "pods"] as const;

describe.skipIf(kubernetesMissing())("an instance on Kubernetes", () => {
  let world: KubernetesWorld;
  beforeAll(async () => {
    world = await openKubernetesWorld();
  });
  afterAll(() => world.close());

  const specFor = (more: Partial<InstanceSpec> = {}) => instanceSpec({ artifact: "localhost/agents/good:1", ...more });
  const nameOf = ({ instance_id }: InstanceSpec) => `threadmill-${instance_id}`;
  const objectsOf = async ({ instance_id }: InstanceSpec) => {
    const found: string[] = [];
    for (const kind of KINDS) {
      const objects = await world.cluster.all(kind);
      if (objects.some(({ metadata }) => metadata.labels?.["threadmill.instance"] === instance_id)) found.push(kind);
    }
    return found;
  };
  /** Kubernetes deletes what belongs to a Deployment in the background. */
  const nothingIsLeftOf = (order: InstanceSpec) =>
    until("the objects are deleted", async () => (await objectsOf(order)).length === 0);
  const failureOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => "",
      (error: Error) => error.message,
    );

  it("consists of four objects, which Kubernetes deletes with the Deployment", async () => {
    const order = specFor();
    const ref = await world.driver.ensure(order);
    expect(await objectsOf(order)).toEqual([...KINDS]);
    await world.driver.stop(ref, { grace_ms: 0 });
    await nothingIsLeftOf(order);
  });

  it("is continued by the next process after a crash between any two calls", async () => {
    const order = specFor();
    const crashed: string[] = [];
    const attempt = async (work: (driver: DeployDriver) => Promise<unknown>, crash_at: number): Promise<boolean> => {
      let calls = 0;
      world.cluster.onRequest = (change) => {
        if (++calls < crash_at) return;
        crashed.push(change.replace(order.instance_id, "ID"));
        throw new Error("crash");
      };
      return work(world.open()).then(
        () => true,
        () => false,
      );
    };
    const MAX_CALLS = 8;
    for (let call = 1; call < MAX_CALLS && !(await attempt((driver) => driver.ensure(order), call)); call++) {
      await until("Kubernetes has seen the Deployment", async () => {
        const deployments = await world.cluster.all("deployments");
        return deployments.every(({ metadata, status }) => status.observedGeneration === metadata.generation);
      });
      expect(await objectsOf(order)).not.toContain("pods");
    }
    expect(crashed).toEqual([
      "PATCH deployments/threadmill-ID",
      "PATCH secrets/threadmill-ID",
      "PATCH services/threadmill-ID",
      "PATCH deployments/threadmill-ID",
    ]);
    world.cluster.onRequest = () => undefined;
    const [ref] = (await world.driver.list()).filter(({ instance_id }) => instance_id === order.instance_id);
    if (!ref) throw new Error("The instance is not listed.");
    await answersOk(ref);
    const stop = (driver: DeployDriver) => driver.stop(ref, { grace_ms: 0 });
    for (let call = 1; call < MAX_CALLS && !(await attempt(stop, call)); call++);
    world.cluster.onRequest = () => undefined;
    await nothingIsLeftOf(order);
  });

  it("is one, even if another process of the service creates it between two calls", async () => {
    const order = specFor();
    const other = world.open();
    let second: Promise<InstanceRef> | undefined;
    world.cluster.onRequest = async () => {
      if (second) return;
      second = other.ensure(order);
      await second;
    };
    const first = await world.driver.ensure(order);
    world.cluster.onRequest = () => undefined;
    expect(await second).toEqual(first);
    expect(await objectsOf(order)).toEqual([...KINDS]);
    await world.driver.stop(first, { grace_ms: 0 });
  });

  it("belongs to the service with the same database only", async () => {
    const order = specFor();
    const ref = await world.driver.ensure(order);
    const other = world.open({ database_url: "postgres://elsewhere/threadmill" });
    expect(await world.open().list()).toContainEqual(ref);
    expect(await other.list()).toEqual([]);
    await world.driver.stop(ref, { grace_ms: 0 });
  });

  it("moves to the pod that replaces its own", async () => {
    const order = specFor();
    const ref = await world.driver.ensure(order);
    await answersOk(ref);
    const pods = await world.cluster.all("pods");
    const pod = pods.find(({ metadata }) => metadata.name.startsWith(nameOf(order)));
    await world.cluster.evict(pod);
    expect(await world.driver.probe(ref)).toEqual({ state: "ended", reason: "the pod no longer exists" });
    const moved = await world.driver.ensure(order);
    expect(moved).toEqual({ ...ref, handle: expect.not.stringContaining(pod.metadata.name) });
    await answersOk(moved);
    expect((await ask(moved, order, {})).type).toBe("ai");
    await world.driver.stop(moved, { grace_ms: 0 });
  });

  it("is refused with the name of the other program that has changed it", async () => {
    const order = specFor();
    const ref = await world.driver.ensure(order);
    await world.cluster.change("deployments", nameOf(order), "kubectl", { spec: { replicas: 0 } });
    await until("the pod is gone", async () => !(await objectsOf(order)).includes("pods"));
    expect(await world.driver.probe(ref)).toMatchObject({ state: "ended" });
    const failure = await failureOf(world.driver.ensure(order));
    expect(failure.replace(/ at [\d:TZ.-]+Z:/, ":")).toBe(
      `The Deployment ${nameOf(order)} was changed by another program: Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas. Delete the object so that this service can create it again.`,
    );
    await world.driver.stop(ref, { grace_ms: 0 });
  });

  /** The kubelet has reported about each pod that there is. */
  const isRefused = (order: InstanceSpec) =>
    until("the kubelet has refused its image", async () => {
      const pods = await world.cluster.all("pods");
      const own = pods.filter(({ metadata }) => metadata.name.startsWith(nameOf(order)));
      return own.every(({ status }) => status.containerStatuses !== undefined);
    });

  const DRIVER_RULES = RULES.filter(({ resources }) => resources[0] !== "pods/log");
  const without = (resource: string, verb: string) =>
    RULES.map((rule) =>
      rule.resources[0] === resource ? { ...rule, verbs: rule.verbs.filter((one) => one !== verb) } : rule,
    );

  it.each(DRIVER_RULES.flatMap(({ resources: [resource = ""], verbs }) => verbs.map((verb) => [resource, verb])))(
    "names the rule that is missing: %s %s",
    async (resource = "", verb = "") => {
      const order = specFor();
      const unknown = specFor({ artifact: "localhost/agents/nobody-has:1" });
      const ref = { ...order, handle: "", address: "" };
      await world.cluster.grant(without(resource, verb));
      const failures = [
        await failureOf(world.driver.list()),
        await failureOf(world.driver.ensure(order)),
        await failureOf(world.driver.stop(ref, { grace_ms: 0 })),
        await failureOf(world.driver.ensure(unknown)),
        await failureOf(isRefused(unknown)),
        await failureOf(world.driver.ensure(unknown)),
      ];
      await world.cluster.grant(RULES);
      await world.driver.stop(ref, { grace_ms: 0 });
      await world.driver.stop({ ...ref, ...unknown }, { grace_ms: 0 });
      const group = resource === "deployments" ? "apps" : "";
      expect(failures.join("\n")).toContain(
        `Add this rule to the Kubernetes Role of this service: {apiGroups: ["${group}"], resources: ["${resource}"], verbs: ["${verb}"]}.`,
      );
    },
  );

  it("reports in its log that the rule to read it is missing", async () => {
    const lines: string[] = [];
    const order = specFor({ log: ({ message }) => lines.push(message) });
    await world.cluster.grant(without("pods/log", "get"));
    const ref = await world.driver.ensure(order);
    const rule =
      'Add this rule to the Kubernetes Role of this service: {apiGroups: [""], resources: ["pods/log"], verbs: ["get"]}.';
    await until("it is reported", async () => lines.some((line) => line.endsWith(rule)));
    await world.cluster.grant(RULES);
    await world.driver.stop(ref, { grace_ms: 0 });
  });

  it("is refused with an error message when its image cannot be pulled", async () => {
    const order = specFor({ artifact: "localhost/agents/nobody-has:1" });
    const ref = await world.driver.ensure(order);
    await isRefused(order);
    const reason = "the container could not be started (ErrImagePull: localhost/agents/nobody-has:1: not found)";
    expect(await world.driver.probe(ref)).toEqual({ state: "ended", reason });
    expect(await failureOf(world.driver.ensure(order))).toBe(`The instance failed: ${reason}.`);
    await world.driver.stop(ref, { grace_ms: 0 });
  });

  it("is refused when the service has no Postgres, or its registry is not listed", async () => {
    const onSqlite = world.open({ database_url: undefined });
    expect(await failureOf(onSqlite.ensure(specFor()))).toMatch(/^Deployments on Kubernetes need a Postgres database/);
    const io = { log: () => undefined, signal: new AbortController().signal };
    const pin = world.driver.pin?.({ deployment_id: "", image: "ghcr.io/acme/agent:1", pinned: false }, io);
    expect(await failureOf(pin as Promise<string>)).toMatch(/^The image repository ghcr\.io\/\S+ is not allowed: add/);
  });

  it("is refused with the setting to check when there is no cluster", async () => {
    const kubeconfig = join(world.at.data_dir, "no-such-file");
    const failure = await failureOf(world.open({ kubeconfig }).ensure(specFor()));
    expect(failure).toMatch(/^The credentials for the Kubernetes API could not be read .*THREADMILL_KUBECONFIG/);
  });
});
