import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { generateEncryptionKey } from "../../src/access/encryption/encryption-key.ts";
import { KeyRing } from "../../src/access/encryption/key-ring.ts";
import { DeployError } from "../../src/control-plane/drivers/driver.ts";
import { apiKeyAad } from "../../src/control-plane/rollout/instance-spec.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { ASKING, CALLER, World } from "./world.ts";

describe.each(databases)("a deployment on %s", (name) => {
  let world: World;
  beforeAll(async () => {
    world = await World.open(name);
  });
  beforeEach(() => world.clear());
  afterAll(() => world.close());

  const states = async (id: string) => (await world.get(id)).instances.map(({ state }) => state).join();
  const instancesAre = (id: string, wanted: string) =>
    world.until(`the instances are ${wanted}`, async () => (await states(id)) === wanted);
  const message = async (id: string, seq: number) => (await world.revision(id, seq)).status_message;
  const running = () => [...world.driver.running.keys()].sort();
  /** A deployment that serves, and its only instance. */
  async function serving(ref = "main"): Promise<{ id: string; revision_id: string; instance_id: string }> {
    const id = await world.deploy("serving", ref);
    await world.become(id, "DEPLOYED");
    const [instance] = (await world.get(id)).instances;
    return { id, revision_id: instance?.revision_id ?? "", instance_id: instance?.instance_id ?? "" };
  }

  describe("that is new", () => {
    it("is built, started and served", async () => {
      const { router } = world.start();
      const { id, revision_id } = await serving();
      const { deployment, instances } = await world.get(id);
      expect(deployment.active_revision_id).toBe(revision_id);
      expect(instances).toMatchObject([{ state: "ready", restarts: 0, replica: 0 }]);
      const [upstream] = router.upstreams.get(id) ?? [];
      expect(upstream).toMatchObject({ instance_id: instances[0]?.instance_id, address: instances[0]?.address });
      expect(world.driver.running.get(upstream?.instance_id ?? "")?.order.api_key).toBe(upstream?.api_key);
    });

    it("gets its secrets and its identity, and no other variables", async () => {
      world.start();
      const secrets = [
        { name: "OPENAI_API_KEY", value: "sk-1" },
        { name: "THREADMILL_TRACE_STATELESS", value: "1" },
      ];
      const id = await world.deploy("secretive", "main", { secrets });
      await world.become(id, "DEPLOYED");
      const order = [...world.driver.running.values()][0]?.order;
      expect(order?.env).toEqual({
        OPENAI_API_KEY: "sk-1",
        LANGSMITH_DEPLOYMENT_NAME: "secretive",
        LANGSMITH_HOST_PROJECT_ID: id,
        LANGSMITH_HOST_PROJECT_NAME: "secretive",
        LANGSMITH_HOST_REVISION_ID: order?.revision_id,
        LANGSMITH_TENANT_ID: order?.tenant_id,
        THREADMILL_ROLLOUT: String((await world.revision(id, 1)).deploying_at),
        THREADMILL_TRACE_STATELESS: "1",
        THREADMILL_TRACING: "0.5",
        THREADMILL_TRACING_PROJECT: "secretive",
      });
      expect(world.driver.envs).toEqual([{ OPENAI_API_KEY: "sk-1", THREADMILL_TRACE_STATELESS: "1" }]);
    });

    it("has new instances execute runs once they serve, and not before", async () => {
      world.start();
      const id = await world.deploy("handed-over", "main");
      const executes = async (n: number) =>
        world.driver.active_rollouts.get(id) === (await world.revision(id, n)).deploying_at;
      await world.until("the first executes runs", () => executes(1));
      await world.update(id, "run-held");
      await world.until("the second is asked for /ok", async () => (await world.get(id)).instances.length === 2);
      await world.quiet();
      expect(await executes(1)).toBe(true);
      world.driver.release((await world.revision(id, 2)).revision_id);
      await world.until("the second executes runs", () => executes(2));
      await world.redeploy(id, (await world.revision(id, 1)).revision_id);
      await world.until("the first executes them again", () => executes(1));
    });

    it("keeps the builds of the five that were deployed last, and no others can be deployed again", async () => {
      world.start();
      const id = await world.deploy("many", "run-1");
      await world.become(id, "DEPLOYED");
      for (let n = 2; n <= 7; n++) {
        await world.update(id, `run-${n}`);
        await world.become(id, ...Array.from({ length: n }, () => "DEPLOYED"));
      }
      const built = (...numbers: number[]) => numbers.map((n) => `built/run-${n}`);
      const keptAre = (...numbers: number[]) =>
        world.until(
          `the builds ${numbers} are kept`,
          async () => [...(world.driver.kept.get(id) ?? [])].sort().join() === built(...numbers).join(),
        );
      await keptAre(3, 4, 5, 6, 7);
      const revision_id = async (n: number) => (await world.revision(id, n)).revision_id;
      await expect(world.redeploy(id, await revision_id(2))).rejects.toThrow("its build was removed");
      await world.redeploy(id, await revision_id(3));
      await world.become(id, ...Array.from({ length: 7 }, () => "DEPLOYED"));
      await world.update(id, "run-8");
      await world.become(id, ...Array.from({ length: 8 }, () => "DEPLOYED"));
      // The third was deployed after the fourth.
      await keptAre(3, 5, 6, 7, 8);
    });

    it("gets as many instances as its resources specify, and all of them must be ready", async () => {
      const { router } = world.start();
      const resource_spec = { min_scale: 3, cpu_limit: 2, memory_limit_mb: 512 };
      const id = await world.deploy("wide", "run-held", { source_config: { resource_spec } });
      await instancesAre(id, "starting,starting,starting");
      const { revision_id } = await world.revision(id, 1);
      world.driver.release(revision_id);
      await world.become(id, "DEPLOYED");
      expect(router.upstreams.get(id)).toHaveLength(3);
      const [one] = [...world.driver.running.values()];
      expect(one?.order.resources).toEqual({ cpu_limit: 2, memory_limit_mb: 512 });
    });

    it("keeps in its log what the build wrote", async () => {
      world.start();
      const { id } = await serving();
      const lines = await world.logOf(id);
      expect(lines).toMatchObject([{ kind: "build", level: "INFO", message: "building main" }]);
    });

    it("keeps in its log what an instance wrote, with characters and times that no database stores", async () => {
      world.start();
      const id = await world.deploy("odd", "run-held");
      await instancesAre(id, "starting");
      const [order] = [...world.driver.running.values()].map((instance) => instance.order);
      const texts = ["nul \0", "half \ud800", "late", "never", "between"];
      for (const [i, at] of [Date.now(), Date.now(), 9e18, Number.NaN, 1.5].entries())
        order?.log({ at, level: "INFO", message: texts[i] ?? "", run_id: "\0" });
      await order?.logsPersisted?.();
      const lines = (await world.logOf(id)).filter(({ kind }) => kind === "deploy");
      expect(lines.map(({ message }) => message)).toEqual(["nul \ufffd", "half \ufffd", "late", "never", "between"]);
      expect(lines.every(({ at }) => Math.abs(at - Date.now()) < 60_000)).toBe(true);
      world.driver.release((await world.revision(id, 1)).revision_id);
      await world.become(id, "DEPLOYED");
    });

    it("waits for its turn while another is built", async () => {
      world.start();
      const first = await world.deploy("first", "build-held");
      await world.become(first, "BUILDING");
      const second = await world.deploy("second", "main");
      await world.become(second, "AWAITING_BUILD");
      world.driver.release((await world.revision(first, 1)).revision_id);
      await world.become(second, "DEPLOYED");
    });

    it("is released when no instance is left", async () => {
      world.start();
      const id = await world.deploy("broken", "build-fails");
      await world.until("nobody holds it", async () => (await world.get(id)).deployment.lease_holder === null);
      expect(await message(id, 1)).toBe("langgraph.json names no graph.");
      await world.update(id, "main");
      await world.become(id, "BUILD_FAILED", "DEPLOYED");
    });
  });

  describe("that is changed", () => {
    it("sends new requests to the new instance, and drains the old one until it has none left", async () => {
      const { router } = world.start();
      const { id, instance_id } = await serving();
      world.in_flight.set(instance_id, 2);
      await world.update(id, "next");
      await world.become(id, "DEPLOYED", "DEPLOYED");
      const second = await world.revision(id, 2);
      expect((await world.get(id)).deployment.active_revision_id).toBe(second.revision_id);
      expect(router.upstreams.get(id)).toHaveLength(1);
      expect(router.upstreams.get(id)).not.toMatchObject([{ instance_id }]);
      await world.pass(30_000);
      expect(running()).toContain(instance_id);
      world.in_flight.delete(instance_id);
      await instancesAre(id, "ready");
      expect(world.driver.stopped).toEqual([{ instance_id, grace_ms: 45_000 }]);
    });

    it("ends requests in flight when the drain time is over", async () => {
      world.start();
      const { id, instance_id } = await serving();
      world.in_flight.set(instance_id, Number.POSITIVE_INFINITY);
      await world.update(id, "next");
      await world.become(id, "DEPLOYED", "DEPLOYED");
      await world.pass(55_000);
      expect(running()).toContain(instance_id);
      await world.pass(10_000);
      expect(running()).not.toContain(instance_id);
    });

    it.each([
      ["build-fails", "BUILD_FAILED", "langgraph.json names no graph."],
      ["run-refused", "DEPLOY_FAILED", "The port is taken."],
      [
        "run-dies",
        "DEPLOY_FAILED",
        "An instance exited 3 times without becoming ready. Last exit: the process exited with status 1.",
      ],
      [
        "run-never",
        "DEPLOY_FAILED",
        "The instances were not ready after 20 s. Last readiness check: /ok returned status 503.",
      ],
    ])("keeps running unchanged when its revision %s", async (ref, status, why) => {
      const { router } = world.start();
      const { id, instance_id, revision_id } = await serving();
      await world.update(id, ref);
      await world.become(id, "DEPLOYED", status);
      expect(await message(id, 2)).toBe(why);
      await instancesAre(id, "ready");
      expect(running()).toEqual([instance_id]);
      expect(router.upstreams.get(id)).toMatchObject([{ instance_id }]);
      expect((await world.get(id)).deployment.active_revision_id).toBe(revision_id);
    });

    it.each([
      ["build-trouble", "BUILD_FAILED", "build"],
      ["run-trouble", "DEPLOY_FAILED", "start"],
    ])(
      "fails when the driver fails four times (%s), and reports that the user did not cause it",
      async (ref, status, action) => {
        world.start();
        const { id } = await serving();
        await world.update(id, ref);
        await world.become(id, "DEPLOYED", status);
        expect(await message(id, 2)).toBe(
          `The ${action} failed 4 times because of an infrastructure error, not because of the deployment. See the log of the Threadmill service, then deploy again.`,
        );
      },
    );

    it.each(["build-flaky", "run-flaky", "run-falls"])("recovers when its revision is %s", async (ref) => {
      world.start();
      const { id } = await serving();
      await world.update(id, ref);
      await world.become(id, "DEPLOYED", "DEPLOYED");
      await instancesAre(id, "ready");
    });

    it("waits for its listener, however often it was not connected", async () => {
      world.start();
      const id = await world.deploy("remote", "run-unreachable");
      await world.become(id, "DEPLOYED");
      await instancesAre(id, "ready");
    });

    it("is given more time than the deadline as long as it writes output, but not forever", async () => {
      world.start();
      const id = await world.deploy("chatty", "run-never");
      await instancesAre(id, "starting");
      const order = [...world.driver.running.values()][0]?.order;
      const began = world.time.now();
      await world.until("it is given up", async () => {
        const at = world.time.now();
        if (at - began < 50_000 && at % 1_000 === 0) order?.log({ at, level: "INFO", message: "loading weights" });
        return (await world.revision(id, 1)).status === "DEPLOY_FAILED";
      });
      expect(world.time.now() - began).toBeGreaterThan(50_000);
      expect(world.time.now() - began).toBeLessThan(60_000);
      await world.update(id, "run-never");
      await world.become(id, "DEPLOY_FAILED", "DEPLOYING");
      await instancesAre(id, "starting");
      const [again] = [...world.driver.running.values()];
      const second = world.time.now();
      let last = 0;
      await world.until("it is given up", async () => {
        const at = world.time.now();
        if (at - last >= 2_000) again?.order.log({ at, level: "INFO", message: "loading weights" });
        if (at - last >= 2_000) last = at;
        return (await world.revision(id, 2)).status === "DEPLOY_FAILED";
      });
      expect(world.time.now() - second).toBeLessThan(85_000);
    });

    it("takes the newest of the revisions that wait", async () => {
      world.start();
      const id = await world.deploy("busy", "build-held");
      await world.become(id, "BUILDING");
      for (const ref of ["second", "third"]) await world.update(id, ref);
      await world.become(id, "BUILDING", "SKIPPED", "QUEUED");
      world.driver.release((await world.revision(id, 1)).revision_id);
      await world.become(id, "DEPLOYED", "SKIPPED", "DEPLOYED");
    });

    it("runs images that others have built", async () => {
      world.start();
      const image = { source: "external_docker", source_config: { repo_url: undefined } } as const;
      const id = await world.deploy("image", "", { ...image, source_revision_config: { image_uri: "agents/main:1" } });
      await world.become(id, "DEPLOYED");
      expect(await world.revision(id, 1)).toMatchObject({ artifact: "agents/main:1", built_at: null });
    });

    it("reports that no driver can run its source", async () => {
      world.start();
      const image = { source: "internal_docker", source_config: { repo_url: undefined } } as const;
      const id = await world.deploy("lost", "", { ...image, source_revision_config: { image_uri: "agents/main:1" } });
      await world.become(id, "CREATE_FAILED");
      expect(await message(id, 1)).toBe('This service cannot run deployments with source "internal_docker".');
    });
  });

  describe("that is interrupted", () => {
    it.each([
      ["build-held", "BUILDING"],
      ["run-held", "DEPLOYING"],
    ])("stops what %s does, and keeps running unchanged", async (ref, status) => {
      const { router } = world.start();
      const { id, instance_id } = await serving();
      await world.update(id, ref);
      await world.become(id, "DEPLOYED", status);
      if (status === "DEPLOYING") await instancesAre(id, "ready,starting");
      await world.interrupt(id, (await world.revision(id, 2)).revision_id);
      await world.become(id, "DEPLOYED", "INTERRUPTED");
      await instancesAre(id, "ready");
      expect(running()).toEqual([instance_id]);
      expect(router.upstreams.get(id)).toMatchObject([{ instance_id }]);
      expect(await world.revision(id, 2)).toMatchObject({
        interrupt_asked: 0,
        artifact: ref === "run-held" ? "built/run-held" : null,
      });
      // The builder is free again.
      await world.update(id, "next");
      await world.become(id, "DEPLOYED", "INTERRUPTED", "DEPLOYED");
    });
  });

  it("cannot be interrupted once the traffic has been switched, even when the rows could not be written at once", async () => {
    const { router, life } = world.start();
    const { id } = await serving();
    const { activate } = router;
    let switched = 0;
    let interrupting: Promise<unknown> | undefined;
    router.activate = (deployment_id, upstreams) => {
      activate.call(router, deployment_id, upstreams);
      if (++switched > 1) return;
      // Refused when the second attempt to write the rows has finished first; accepted and without effect otherwise.
      interrupting = world
        .revision(id, 2)
        .then(({ revision_id }) => world.interrupt(id, revision_id))
        .catch((e: unknown) => expect(e).toMatchObject({ code: "revision_ended" }));
      life.failNext();
    };
    await world.update(id, "next");
    await world.become(id, "DEPLOYED", "DEPLOYED");
    await interrupting;
    expect(switched).toBe(2);
    expect(await world.revision(id, 2)).toMatchObject({ interrupt_asked: 0 });
    await instancesAre(id, "ready");
  });

  it("stays interrupted when its driver fails only after that", async () => {
    world.start();
    const { id, instance_id } = await serving();
    world.driver.ensure = async ({ revision_id }) => {
      await world.interrupt(id, revision_id);
      while ((await world.revision(id, 2)).status !== "INTERRUPTED") await world.turns(1);
      throw new DeployError("The port is taken.");
    };
    await world.update(id, "next");
    await world.become(id, "DEPLOYED", "INTERRUPTED");
    await instancesAre(id, "ready");
    expect((await world.revision(id, 2)).status).toBe("INTERRUPTED");
    expect(running()).toEqual([instance_id]);
  });

  describe("that is deployed again", () => {
    it("keeps its state when it is interrupted before anything was started", async () => {
      const { reconciler } = world.start();
      const { id, instance_id, revision_id } = await serving();
      await reconciler.stop();
      world.processes = [];
      await world.redeploy(id, revision_id);
      await world.interrupt(id, revision_id);
      const { router } = world.start();
      await world.become(id, "INTERRUPTED");
      await world.pass(30_000);
      expect(router.upstreams.get(id)).toMatchObject([{ instance_id }]);
    });

    it("goes back to an earlier revision without a build, even while that is still drained", async () => {
      const { router } = world.start();
      const { id, instance_id, revision_id } = await serving();
      world.in_flight.set(instance_id, 1);
      await world.update(id, "next");
      await world.become(id, "DEPLOYED", "DEPLOYED");
      const builds = world.driver.envs.length;
      await world.redeploy(id, revision_id);
      await world.until("it serves", async () => (await world.get(id)).deployment.active_revision_id === revision_id);
      expect(world.driver.envs).toHaveLength(builds);
      expect(router.upstreams.get(id)).toHaveLength(1);
      expect(router.upstreams.get(id)).not.toMatchObject([{ instance_id }]);
      expect((await world.get(id)).instances.filter(({ state }) => state === "draining").length).toBeGreaterThan(0);
      world.in_flight.clear();
      await instancesAre(id, "ready");
    });

    it("replaces the instances of the revision that serves", async () => {
      const { router } = world.start();
      const { id, instance_id, revision_id } = await serving();
      await world.redeploy(id, revision_id);
      await world.become(id, "DEPLOYED");
      await instancesAre(id, "ready");
      expect(running()).not.toContain(instance_id);
      expect(router.upstreams.get(id)).toMatchObject([{ instance_id: running()[0] }]);
    });

    it("keeps serving with the existing instances when the new instances of the same revision fail", async () => {
      const { router } = world.start();
      const { id, instance_id, revision_id } = await serving("run-once");
      await world.redeploy(id, revision_id);
      await world.become(id, "DEPLOY_FAILED");
      await instancesAre(id, "ready");
      expect(running()).toEqual([instance_id]);
      expect(router.upstreams.get(id)).toMatchObject([{ instance_id }]);
      world.driver.kill(instance_id);
      await world.until("it is missed", async () => (await states(id)) === "wanted");
      expect((await world.get(id)).deployment.active_revision_id).toBe(revision_id);
    });

    it("lets the serving instance finish when it is replaced after that", async () => {
      world.start();
      const { id, instance_id, revision_id } = await serving("run-once");
      await world.redeploy(id, revision_id);
      await world.become(id, "DEPLOY_FAILED");
      await world.update(id, "next");
      await world.become(id, "DEPLOY_FAILED", "DEPLOYED");
      await instancesAre(id, "ready");
      expect(world.driver.stopped).toContainEqual({ instance_id, grace_ms: 45_000 });
    });
  });

  describe("whose encryption key was lost", () => {
    it("is replaced by a new revision, and can be deleted", async () => {
      world.start();
      const { id, instance_id } = await serving();
      const lost = new KeyRing([generateEncryptionKey()], undefined, createLog("silent"));
      const api_key = lost.seal("key", apiKeyAad({ tenant_id: CALLER.tenant_id, instance_id }));
      await world.execute(`update instances set api_key = '${api_key}' where instance_id = '${instance_id}'`);
      for (const { life } of world.processes.splice(0)) life.end();
      const { router } = world.start();
      await world.update(id, "next");
      await world.become(id, "DEPLOYED", "DEPLOYED");
      expect(router.upstreams.get(id)).toHaveLength(1);
      await world.remove(id);
      await world.deleted(id);
    });
  });

  describe("whose instance exits", () => {
    it("gets it back after 1 s, 2 s, 4 s; the router leaves it out meanwhile", async () => {
      const { router } = world.start();
      const { id, instance_id } = await serving();
      for (const [deaths, seconds] of [1, 2, 4].entries()) {
        world.driver.kill(instance_id);
        await instancesAre(id, "wanted");
        const at = world.time.now();
        await world.quiet();
        expect(router.upstreams.get(id)).toEqual([]);
        await instancesAre(id, "starting");
        expect(world.time.now() - at).toBe(seconds * 1000);
        await instancesAre(id, "ready");
        await world.quiet();
        const [row] = (await world.get(id)).instances;
        expect(row?.restarts).toBe(deaths + 1);
        expect(router.upstreams.get(id)).toMatchObject([{ instance_id, address: row?.address }]);
      }
    });

    it("resets its restart count when the instance has been ready for long enough", async () => {
      world.start();
      const { id, instance_id } = await serving();
      world.driver.kill(instance_id);
      await instancesAre(id, "wanted");
      await instancesAre(id, "ready");
      await world.until("it is forgotten", async () => (await world.get(id)).instances[0]?.restarts === 0);
    });

    it("is not kept waiting by a build", async () => {
      world.start();
      const { id, instance_id } = await serving();
      await world.update(id, "build-held");
      await world.become(id, "DEPLOYED", "BUILDING");
      world.driver.kill(instance_id);
      await instancesAre(id, "wanted");
      await instancesAre(id, "ready");
      expect((await world.revision(id, 2)).status).toBe("BUILDING");
    });
  });

  describe("that is deleted", () => {
    it.each([
      ["serves", "main", "DEPLOYED"],
      ["is built", "build-held", "BUILDING"],
      ["is started", "run-held", "DEPLOYING"],
      ["has failed", "build-fails", "BUILD_FAILED"],
    ])("leaves nothing behind when it %s", async (_, ref, status) => {
      const { router } = world.start();
      const id = await world.deploy("short-lived", ref);
      await world.become(id, status);
      await world.remove(id);
      await world.deleted(id);
      expect(world.driver.running.size).toBe(0);
      expect(world.driver.remains.size).toBe(0);
      expect(router.upstreams.has(id)).toBe(false);
      expect(await world.logOf(id)).toEqual([]);
      const again = await world.deploy("short-lived", "main");
      await world.become(again, "DEPLOYED");
    });

    it("does not wait for requests in flight", async () => {
      world.start();
      const { id, instance_id } = await serving();
      world.in_flight.set(instance_id, 1);
      await world.remove(id);
      await world.deleted(id);
      expect(world.driver.stopped).toEqual([{ instance_id, grace_ms: 5_000 }]);
    });

    it("does not delay other deployments, and is not delayed by them", async () => {
      const { router } = world.start();
      const { id } = await serving();
      const other = await world.deploy("other", "main");
      await world.become(other, "DEPLOYED");
      await world.deployments.deleteMany(ASKING.caller, [id]);
      await world.deleted(id);
      expect(router.upstreams.get(other)).toHaveLength(1);
    });
  });
});
