import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { SETTINGS, World } from "./world.ts";

describe.each(databases)("a process that reconciles on %s", (name) => {
  let world: World;
  beforeAll(async () => {
    world = await World.open(name);
  });
  beforeEach(() => world.clear());
  afterAll(() => world.close());

  const instancesAre = (id: string, wanted: string) =>
    world.until(`the instances are ${wanted}`, async () => {
      const { instances } = await world.get(id);
      return instances.map(({ state }) => state).join() === wanted;
    });

  async function stopAll(): Promise<void> {
    const stopping = world.processes.map(({ reconciler }) => reconciler.stop());
    let stopped = false;
    const all = Promise.all(stopping).then(() => {
      stopped = true;
    });
    await world.until("it has stopped", async () => stopped);
    await all;
    world.processes = [];
  }

  it("leaves instances running when it stops, and the next process attaches to them", async () => {
    world.start();
    const id = await world.deploy("steady", "main");
    await world.become(id, "DEPLOYED");
    const [running] = [...world.driver.running.values()];
    await stopAll();
    expect((await world.get(id)).deployment.lease_holder).toBeNull();
    expect(world.driver.running.size).toBe(1);
    const { router } = world.start();
    await world.until("it is served", async () => router.upstreams.get(id)?.length === 1);
    expect([...world.driver.running.values()]).toEqual([running]);
    world.driver.kill(running?.ref.instance_id ?? "");
    await instancesAre(id, "wanted");
    await instancesAre(id, "ready");
  });

  it("aborts a build when it stops, and the next process starts the build over", async () => {
    world.start();
    const id = await world.deploy("long", "build-held");
    await world.become(id, "BUILDING");
    const at = world.time.now();
    await stopAll();
    expect(world.time.now() - at).toBeLessThan(SETTINGS.abort_ms + 1);
    expect((await world.revision(id, 1)).status).toBe("BUILDING");
    world.driver.release((await world.revision(id, 1)).revision_id);
    world.start();
    await world.become(id, "DEPLOYED");
    expect(world.driver.envs).toHaveLength(2);
  });

  it("does not count downtime of the reconciler for the deadline", async () => {
    world.start();
    const id = await world.deploy("patient", "run-held");
    await instancesAre(id, "starting");
    const [instance_id] = world.driver.running.keys();
    await stopAll();
    await world.forward(10 * SETTINGS.deadline_ms);
    world.start();
    await world.quiet();
    expect((await world.revision(id, 1)).status).toBe("DEPLOYING");
    world.driver.release((await world.revision(id, 1)).revision_id);
    await world.become(id, "DEPLOYED");
    expect([...world.driver.running.keys()]).toEqual([instance_id]);
  });

  it("starts instances that should run but have exited", async () => {
    world.start();
    const id = await world.deploy("fallen", "main");
    await world.become(id, "DEPLOYED");
    await stopAll();
    for (const instance_id of world.driver.running.keys()) world.driver.kill(instance_id);
    const { router } = world.start();
    await world.quiet();
    expect(world.driver.running.size).toBe(1);
    await world.until("it is served", async () => router.upstreams.get(id)?.length === 1);
    expect(router.upstreams.get(id)).toMatchObject([{ address: [...world.driver.running.values()][0]?.ref.address }]);
  });

  it("stops what belongs to no row, and nothing else", async () => {
    await startLost();
    const id = await world.deploy("kept", "main");
    world.start();
    await world.become(id, "DEPLOYED");
    expect(world.driver.stopped).toEqual([{ instance_id: "lost", grace_ms: 5_000 }]);
    expect(world.driver.running.size).toBe(1);
  });

  const startLost = () =>
    world.driver.ensure({
      instance_id: "lost",
      deployment_id: "gone",
      revision_id: "gone",
      tenant_id: "gone",
      replica: 0,
      artifact: "built/main",
      config_path: undefined,
      api_key: "",
      database_password: "a-password-0123456789",
      env: {},
      resources: { cpu_limit: undefined, memory_limit_mb: undefined },
      log: () => undefined,
    });

  it("starts at most a given number of instances at a time", async () => {
    const { ensure } = world.driver;
    let [now, max] = [0, 0];
    const two = Promise.withResolvers<void>();
    world.driver.ensure = async (order) => {
      max = Math.max(max, ++now);
      if (now === 2) two.resolve();
      await two.promise;
      // Long enough for a third to come.
      await world.turns(50);
      now--;
      return ensure.call(world.driver, order);
    };
    world.start(undefined, { driver_slots: 2, builds: 6 });
    const ids: string[] = [];
    for (let n = 0; n < 6; n++) ids.push(await world.deploy(`many-${n}`, "main"));
    for (const id of ids) await world.become(id, "DEPLOYED");
    expect(max).toBe(2);
  });

  it("starts instances of others while one uses its grace period", async () => {
    const { stop, ensure } = world.driver;
    const started = Promise.withResolvers<void>();
    let other: string | undefined;
    world.driver.stop = async (...given) => {
      other ??= await world.deploy("other", "main");
      await started.promise;
      return stop.apply(world.driver, given);
    };
    world.driver.ensure = async (order) => {
      if (order.deployment_id === other) started.resolve();
      return ensure.call(world.driver, order);
    };
    world.start(undefined, { driver_slots: 1 });
    const slow = await world.deploy("slow", "main");
    await world.become(slow, "DEPLOYED");
    await world.update(slow, "next");
    await world.until("the other one is deployed", async () => {
      if (other === undefined) return false;
      return (await world.get(other)).revisions[0]?.status === "DEPLOYED";
    });
  });
});
