import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { ASKING, type View, World } from "./world.ts";

describe.each(databases)("the reconciler on %s", (name) => {
  let world: World;
  beforeAll(async () => {
    world = await World.open(name);
  });
  beforeEach(() => world.clear());
  afterAll(() => world.close());

  const view = async (id: string) => (await world.view(id)) as View;
  const statuses = async (id: string) => (await view(id)).revisions.map(({ status }) => status);
  const become = (id: string, ...wanted: string[]) =>
    world.until(`the revisions are ${wanted}`, async () => (await statuses(id)).join() === wanted.join());
  const drained = (id: string) =>
    world.until("nothing is drained any more", async () => (await view(id)).instances.every((i) => i.state === "ready"));

  it("builds, starts and serves a first revision", async () => {
    const { router } = world.start();
    const id = await world.deploy("first", "main");
    await become(id, "DEPLOYED");
    const { deployment, revisions, instances } = await view(id);
    expect(deployment.active_revision_id).toBe(revisions[0]?.revision_id);
    expect(instances).toMatchObject([{ state: "ready", restarts: 0, replica: 0 }]);
    const [upstream] = router.upstreams.get(id) ?? [];
    expect(upstream).toMatchObject({ instance_id: instances[0]?.instance_id, address: instances[0]?.address });
    expect(world.driver.running.get(upstream?.instance_id ?? "")?.order.api_key).toBe(upstream?.api_key);
  });
});
