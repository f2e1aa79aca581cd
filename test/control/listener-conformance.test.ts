import { describe, expect, it } from "vitest";
import type { DeployDriver } from "../../src/control-plane/drivers/driver.ts";
import { PATHS } from "../../src/control-plane/drivers/listener/protocol.ts";
import { instanceSpec } from "../support/instance-spec.ts";
import { kubernetesMissing } from "../support/kubernetes/start.ts";
import { describeDriver } from "./driver-conformance.ts";
import { openKubernetesWorld } from "./kubernetes-world.ts";
import { openListenerWorld } from "./listener-world.ts";

describe.skipIf(kubernetesMissing())("instances of a listener", () => {
  describeDriver("listener", async () => {
    const cluster = await openKubernetesWorld();
    const listener = await openListenerWorld();
    const connect = () => listener.connect(new Map([["", cluster.open()]]));
    await connect();
    return {
      driver: () => ({
        ...listener.driver,
        ensure(spec) {
          listener.instances.add(spec.instance_id);
          return listener.driver.ensure(spec);
        },
      }),
      async restart() {
        await listener.restart();
        await connect();
        // As the reconciler does when it starts.
        await listener.driver.list();
      },
      artifact: async (which) => `localhost/agents/${which}:1`,
      async close() {
        await listener.close();
        await cluster.close();
      },
    };
  });
});

it("a listener cannot answer for an instance of another one", async () => {
  const listener = await openListenerWorld();
  const ref = {
    instance_id: "other",
    deployment_id: "d",
    revision_id: "r",
    handle: "h",
    address: "http://127.0.0.1:1",
  };
  const driver = { ensure: async () => ref, list: async () => [ref], close: async () => undefined };
  await listener.connect(new Map([["", driver as Partial<DeployDriver> as DeployDriver]]));
  const spec = instanceSpec({ artifact: "localhost/agents/good:1" });
  const { instance_id, deployment_id, revision_id } = spec;
  expect(await listener.driver.ensure(spec)).toMatchObject({ instance_id, deployment_id, revision_id, handle: "h" });
  expect(await listener.driver.list()).toEqual([{ ...ref, address: "" }]);
  await listener.close();
});

it("a listener connects the service to its own instances only", async () => {
  const listener = await openListenerWorld();
  await listener.connect(new Map([["", { list: async () => [] } as Partial<DeployDriver> as DeployDriver]]));
  const { status } = await listener.connections.open(listener.listener_id, `${PATHS.connect}127.0.0.1`);
  expect(status).toBe(404);
  await listener.close();
});
