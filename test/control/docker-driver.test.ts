import { existsSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import { foldersIn } from "../../src/control-plane/drivers/docker/folders.ts";
import type { InstanceRef, InstanceSpec } from "../../src/control-plane/drivers/driver.ts";
import { databases } from "../support/databases.ts";
import { engineMissing, startEngine, type TestEngine } from "../support/docker-engine.ts";
import { instanceSpec } from "../support/instance-spec.ts";
import { until } from "../support/until.ts";
import { PROJECT } from "./deployed-project.ts";
import { type DockerWorld, openDockerWorld } from "./docker-world.ts";
import { answersOk, ask, describeDriver } from "./driver-conformance.ts";

/** At its first start the graph listens on the port of its instance before that does. */
const TAKES_PORT = {
  ...PROJECT,
  "graph.mjs": PROJECT["agent.mjs"] as string,
  "agent.mjs": `import { once } from "node:events";
    import { existsSync, readFileSync, writeFileSync } from "node:fs";
    import { createServer } from "node:net";
    const variables = readFileSync("/proc/self/environ", "utf8").split("\0").map((line) => line.split("="));
    const { PORT, THREADMILL_DATA } = Object.fromEntries(variables);
    if (!existsSync(THREADMILL_DATA + "/started")) {
      writeFileSync(THREADMILL_DATA + "/started", "");
      await once(createServer().listen(PORT, "127.0.0.1"), "listening");
    }
    export { graph } from "./graph.mjs";`,
};
const BROKEN = { ...PROJECT, "agent.mjs": "import 'a-package-that-nobody-has'; export const graph = 1;" };

describe.skipIf(engineMissing())("containers", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
    await engine.imageOf("agents/good:1", PROJECT);
    await engine.imageOf("agents/broken:1", BROKEN);
    await engine.imageOf("agents/takes-port:1", TAKES_PORT);
  }, 180_000);
  afterAll(() => engine.stop(), 60_000);

  for (const name of databases) {
    describeDriver(`docker, on ${name}`, async () => {
      const world = await openDockerWorld(name, { docker_socket: engine.socket });
      return {
        driver: () => world.driver,
        restart: () => world.restart(),
        artifact: async (which) => `agents/${which}:1`,
        close: () => world.close(),
      };
    });
  }

  describe("one of them", () => {
    let world: DockerWorld;
    beforeEach(async () => {
      world = await openDockerWorld("sqlite", { docker_socket: engine.socket });
    });
    afterEach(() => world.close(), 60_000);

    const specFor = (more: Partial<InstanceSpec> = {}) => instanceSpec({ artifact: "agents/good:1", ...more });
    const inspect = ({ handle }: InstanceRef) => engine.docker.getContainer(handle).inspect();

    it("has its secrets, its limits, and nothing of the service's environment", async () => {
      process.env.CANARY_OF_THE_SERVICE = "must not be seen";
      const env = { OPENAI_API_KEY: "sk-1", DATABASE_URL: "postgres://elsewhere/own" };
      const order = specFor({ env, resources: { cpu_limit: 1_000, memory_limit_mb: 700 } });
      const ref = await world.driver.ensure(order);
      await answersOk(ref);
      const received = await ask(ref, order, {});
      delete process.env.CANARY_OF_THE_SERVICE;

      expect(received.env).toMatchObject(env);
      expect(Object.keys(received.env)).not.toContain("API_KEYS");
      expect(received.whole.join("\n")).not.toContain("must not be seen");
      const { NCPU } = await engine.docker.info();
      const { HostConfig } = await inspect(ref);
      expect(HostConfig).toMatchObject({ Memory: 700 * 2 ** 20, NanoCpus: NCPU * 1e9, Init: true });
      expect(existsSync(join(foldersIn(world.folder).data, order.deployment_id, "threadmill.db"))).toBe(true);
    });

    it("serves only at a loopback port, in a network of its own", async () => {
      const network = await engine.docker.createNetwork({ Name: "agents", Driver: "bridge" });
      const inNetwork = await openDockerWorld("sqlite", { docker_socket: engine.socket, docker_network: "agents" });
      const order = specFor();
      const ref = await inNetwork.driver.ensure(order);
      await answersOk(ref);
      expect(await inNetwork.driver.list()).toEqual([ref]);
      expect(await world.driver.list()).toEqual([]);
      const { NetworkSettings } = await inspect(ref);
      expect(NetworkSettings.Ports).toEqual({
        "8000/tcp": [{ HostIp: "127.0.0.1", HostPort: new URL(ref.address).port }],
      });
      await inNetwork.close();
      await network.remove();
    });

    it("is found when the service died before it could start it", async () => {
      const order = specFor({ artifact: "agents/broken:1" });
      const ref = await world.driver.ensure(order);
      await world.driver.stop(ref, { grace_ms: 0 });
      const made = await engine.docker.createContainer({
        name: `threadmill-${order.instance_id}`,
        Image: "agents/good:1",
      });
      expect((await world.driver.ensure(order)).handle).toBe(made.id);
      expect((await inspect({ ...ref, handle: made.id })).State.Running).toBe(true);
      await world.driver.stop(ref, { grace_ms: 0 });
      expect(await world.driver.probe({ ...ref, handle: made.id })).toMatchObject({ state: "ended" });
    });

    it("sends lines again that were not stored, and no line twice", async () => {
      const first: string[] = [];
      const order = specFor({
        log: ({ message }) => first.push(message),
        logsPersisted: async () => {
          if (first.includes("two")) throw new Error("closed");
        },
      });
      const ref = await world.driver.ensure(order);
      await answersOk(ref);
      await ask(ref, order, { print: ["one"] });
      await until("it is received", async () => first.includes("one"));
      await ask(ref, order, { print: ["two"] });
      await until("it is received", async () => first.includes("two"));
      await ask(ref, order, { print: ["three"] });

      const second: string[] = [];
      await world.driver.ensure({
        ...order,
        logsPersisted: async () => undefined,
        log: ({ message }) => second.push(message),
      });
      await until("the rest is received", async () => second.includes("three"));
      expect(second.filter((message) => /^(one|two|three)$/.test(message))).toEqual(["two", "three"]);
    });

    it("gets another port if another program took its port before it listened", async () => {
      const order = specFor({ artifact: "agents/takes-port:1" });
      const first = await world.driver.ensure(order);
      await until("it has ended", async () => (await world.driver.probe(first)).state === "ended");
      const second = await world.driver.ensure(order);
      expect(second.address).not.toBe(first.address);
      await answersOk(second);
    });

    it("is refused with an error message when its image has no such program", async () => {
      const base = await engine.docker.createContainer({ Image: "agents/good:1", Cmd: ["/nowhere/program"] });
      await base.commit({ repo: "agents/empty", tag: "1" });
      const order = specFor({ artifact: "agents/empty:1" });
      const ref = await world.driver.ensure(order);
      await until("it is gone", async () => (await world.driver.probe(ref)).state === "ended");
      await expect(world.driver.ensure(order)).rejects.toThrow(/\/nowhere\/program/);
      expect(await world.driver.list()).toEqual([]);
    });

    it("is refused with the engine's message when its limits are invalid", async () => {
      const order = specFor({ resources: { cpu_limit: undefined, memory_limit_mb: 1 } });
      await expect(world.driver.ensure(order)).rejects.toThrow(
        "The container could not be started: Minimum memory limit allowed is 6MB.",
      );
      expect(await world.driver.list()).toEqual([]);
    });

    it("is refused with an error message when its image was deleted", async () => {
      const order = specFor({ artifact: `sha256:${"0".repeat(64)}` });
      await expect(world.driver.ensure(order)).rejects.toThrow(/an image ID cannot be pulled/);
    });

    it.skipIf(!inject("postgres"))("is refused with an error message when it cannot reach the database", async () => {
      const far = await openDockerWorld("postgres", { docker_socket: engine.socket, docker_network: "bridge" });
      await expect(far.driver.ensure(specFor())).rejects.toThrow(
        'Containers in the network "bridge" cannot reach the Postgres server at 127.0.0.1',
      );
      const { read } = far.database;
      const schemas = sql`select nspname from pg_namespace where nspname like 'deployment%'`.compile(read.k);
      expect(await read.all(schemas)).toEqual([]);
      await far.close();
    });
  });
});
