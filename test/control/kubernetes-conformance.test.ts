import { describe } from "vitest";
import { kubernetesMissing } from "../support/kubernetes/start.ts";
import { describeDriver } from "./driver-conformance.ts";
import { openKubernetesWorld } from "./kubernetes-world.ts";

describe.skipIf(kubernetesMissing())("instances on Kubernetes", () => {
  describeDriver("kubernetes", async () => {
    const world = await openKubernetesWorld();
    return {
      driver: () => world.driver,
      async restart() {
        await world.driver.close?.();
        world.driver = world.open();
      },
      artifact: async (which) => `localhost/agents/${which}:1`,
      close: () => world.close(),
    };
  });
});
