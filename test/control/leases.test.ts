import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { type Process, SETTINGS, World } from "./world.ts";

describe.skipIf(!databases.includes("postgres"))("two processes on one Postgres", () => {
  let world: World;
  beforeAll(async () => {
    world = await World.open("postgres");
  });
  beforeEach(() => world.clear());
  afterAll(() => world.close());

  const holder = async (id: string) => (await world.get(id)).deployment.lease_holder;
  const epoch = async (id: string) => (await world.get(id)).deployment.lease_epoch;

  /** What each process asks of the driver, by deployment. */
  function watchDeeds(processes: readonly Process[]): Map<string, Set<number>> {
    const actors = new Map<string, Set<number>>();
    for (const [n, { life }] of processes.entries()) {
      life.onDeed = (deployment_id) => {
        actors.set(deployment_id, (actors.get(deployment_id) ?? new Set()).add(n));
      };
    }
    return actors;
  }

  it("never both work on a deployment", async () => {
    const processes = [world.start(), world.start()];
    const actors = watchDeeds(processes);
    const ids: string[] = [];
    for (let n = 0; n < 8; n++) ids.push(await world.deploy(`shared-${n}`, "main"));
    for (const id of ids) await world.become(id, "DEPLOYED");
    for (const id of ids) await world.update(id, "next");
    for (const id of ids) await world.become(id, "DEPLOYED", "DEPLOYED");
    for (const id of ids) expect(actors.get(id)?.size).toBe(1);
    for (const id of ids) expect(await epoch(id)).toBe(1);
  });

  it("take over from one that hangs, whose late writes are refused", async () => {
    const first = world.start();
    const id = await world.deploy("hanging", "build-held");
    await world.become(id, "BUILDING");
    const before = await holder(id);
    first.life.freeze();
    world.start();
    await world.until("the second one builds", async () => world.driver.envs.length === 2);
    expect(await holder(id)).not.toBe(before);
    const { revision_id } = await world.revision(id, 1);
    world.driver.release(revision_id);
    await world.become(id, "DEPLOYED");
    const after = await world.get(id);
    first.life.thaw();
    await world.pass(3 * SETTINGS.lease_ms);
    expect({ ...(await world.get(id)), deployment: undefined }).toEqual({ ...after, deployment: undefined });
    expect(await epoch(id)).toBe(2);
    expect(world.driver.running.size).toBe(1);
  });

  it("are taken over immediately from a process that shuts down gracefully", async () => {
    const first = world.start();
    const id = await world.deploy("handed-over", "main");
    await world.become(id, "DEPLOYED");
    const before = await holder(id);
    const second = world.start();
    const at = world.time.now();
    await first.reconciler.stop();
    world.processes = [second];
    await world.until("the other one has it", async () => {
      const now = await holder(id);
      return now !== null && now !== before;
    });
    expect(world.time.now() - at).toBeLessThanOrEqual(SETTINGS.poll_ms);
    await world.quiet();
    expect(second.router.upstreams.get(id)).toHaveLength(1);
  });

  it("stop working on deployments whose lease they could not renew", async () => {
    const first = world.start();
    const id = await world.deploy("unrenewed", "build-held");
    await world.become(id, "BUILDING");
    await world.execute("update deployments set lease_epoch = lease_epoch + 1, lease_holder = 'another'");
    const { revision_id } = await world.revision(id, 1);
    world.driver.release(revision_id);
    await world.pass(SETTINGS.lease_ms / 2);
    expect((await world.revision(id, 1)).status).toBe("BUILDING");
    expect(first.life.dead).toBe(false);
    await world.become(id, "DEPLOYED");
  });
});
