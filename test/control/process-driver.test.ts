import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { InstanceRef, InstanceSpec } from "../../src/control-plane/drivers/driver.ts";
import { databases } from "../support/databases.ts";
import { instanceSpec } from "../support/instance-spec.ts";
import { until } from "../support/until.ts";
import { AGENT, LANGGRAPH_JSON, PROJECT, packed } from "./deployed-project.ts";
import { answersOk, ask, describeDriver } from "./driver-conformance.ts";
import { openProcessWorld, type ProcessWorld } from "./process-world.ts";

for (const name of databases) {
  describeDriver(`process, on ${name}`, async () => {
    const world = await openProcessWorld(name);
    const broken = { ...PROJECT, "agent.mjs": "import 'a-package-that-nobody-has'; export const graph = 1;" };
    return {
      driver: () => world.driver,
      restart: () => world.restart(),
      async artifact(which, deployment_id) {
        const source = await packed(which === "good" ? PROJECT : broken);
        return (await world.build(source, { deployment_id })).artifact;
      },
      close: () => world.close(),
    };
  });
}

describe.each(databases)("an instance of the process driver on %s", (name) => {
  let world: ProcessWorld;
  beforeEach(async () => {
    world = await openProcessWorld(name);
  });
  afterEach(() => world.close());

  const specFor = async (more: Partial<InstanceSpec> = {}, files = PROJECT): Promise<InstanceSpec> => {
    const deployment_id = more.deployment_id ?? randomUUID();
    const { artifact } = await world.build(await packed(files), { deployment_id });
    return instanceSpec({ artifact, deployment_id, ...more });
  };
  const start = async (order: InstanceSpec): Promise<InstanceRef> => {
    const ref = await world.driver.ensure(order);
    await answersOk(ref);
    return ref;
  };

  it("has the secrets of its deployment, and nothing of the service's environment", async () => {
    process.env.CANARY_OF_THE_SERVICE = "must not be seen";
    const order = await specFor({ env: { OPENAI_API_KEY: "sk-1", DATABASE_URL: "postgres://elsewhere/own" } });
    const received = await ask(await start(order), order, {});
    delete process.env.CANARY_OF_THE_SERVICE;

    expect(received.env).toMatchObject({ OPENAI_API_KEY: "sk-1", DATABASE_URL: "postgres://elsewhere/own" });
    expect(Object.keys(received.env)).not.toContain("API_KEYS");
    expect(Object.keys(received.env)).not.toContain("THREADMILL_DATABASE_URL");
    expect(received.whole.join("\n")).not.toContain("must not be seen");
    // The packages that come with the service work.
    expect(received.type).toBe("ai");
  });

  it("keeps its threads across its revisions, separate from those of other deployments", async () => {
    const [order, other] = [await specFor(), await specFor()];
    const [ref, elsewhere] = [await start(order), await start(other)];
    const call = (at: InstanceRef, by: InstanceSpec, path: string, method = "GET") =>
      fetch(`${at.address}${path}`, {
        method,
        headers: { "x-api-key": by.api_key, ...(method === "POST" && { "content-type": "application/json" }) },
        body: method === "POST" ? "{}" : null,
      });
    const { thread_id } = (await (await call(ref, order, "/threads", "POST")).json()) as { thread_id: string };

    const next = { ...order, instance_id: randomUUID(), revision_id: randomUUID() };
    const beside = await start(next);
    expect((await call(beside, next, `/threads/${thread_id}`)).status).toBe(200);
    expect((await call(elsewhere, other, `/threads/${thread_id}`)).status).toBe(404);

    await world.driver.stop(ref, { grace_ms: 10_000 });
    await world.driver.stop(beside, { grace_ms: 10_000 });
    await world.driver.remove({ deployment_id: order.deployment_id, artifacts: [] });
    expect(JSON.stringify(readdirSync(world.folder, { recursive: true }))).not.toContain(order.deployment_id);
    if (name === "postgres") {
      const query = sql<{ name: string }>`select schema_name as name from information_schema.schemata`;
      const schemas = await world.database.read.all(query.compile(world.database.read.k) as never);
      const names = schemas.map((row) => (row as { name: string }).name);
      expect(names).not.toContain(`deployment_${order.deployment_id.replaceAll("-", "")}`);
      expect(names).toContain(`deployment_${other.deployment_id.replaceAll("-", "")}`);
    }
  });

  it("is not mistaken for another process that has its pid now", async () => {
    const order = await specFor();
    const ref = await start(order);
    await world.driver.stop(ref, { grace_ms: 10_000 });
    const stranger = spawn("sleep", ["600"], { detached: true });
    const { pid } = stranger as { pid: number };
    const [, started] = ref.handle.split(" ");
    const taken = { ...ref, handle: `${pid} ${started}` };
    const record = { ...taken, process: { pid, started } };
    writeFileSync(join(world.folder, "run", `${ref.instance_id}.json`), JSON.stringify(record));

    expect(await world.driver.probe(taken)).toMatchObject({ state: "ended" });
    await world.driver.stop(taken, { grace_ms: 0 });
    expect(stranger.exitCode).toBeNull();
    expect(() => process.kill(pid, 0)).not.toThrow();
    process.kill(pid, "SIGKILL");
    await once(stranger, "exit");
  });

  it("is found when the service died right after its start, before it knew the pid", async () => {
    const order = await specFor();
    const ref = await start(order);
    const file = join(world.folder, "run", `${ref.instance_id}.json`);
    const { process: known, ...record } = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(file, JSON.stringify(record));
    await world.restart();

    expect(known.pid).toBeGreaterThan(1);
    expect(await world.driver.list()).toEqual([ref]);
    expect(await world.driver.ensure(order)).toEqual(ref);
  });

  it("sends lines again that were not stored, and no line twice", async () => {
    const order = await specFor();
    const first: string[] = [];
    const ref = await start({
      ...order,
      log: ({ message }) => first.push(message),
      // Not earlier: a line of the log of the program may come between the two.
      logsPersisted: async () => {
        if (first.includes("two")) throw new Error("closed");
      },
    });
    await ask(ref, order, { print: ["one"] });
    await until("it is received", async () => first.includes("one"));
    await ask(ref, order, { print: ["two"] });
    await until("it is received", async () => first.includes("two"));
    await ask(ref, order, { print: ["three"] });

    const second: string[] = [];
    await world.driver.ensure({ ...order, log: ({ message }) => second.push(message) });
    await until("the rest is received", async () => second.includes("three"));
    expect(second.filter((message) => /^(one|two|three)$/.test(message))).toEqual(["two", "three"]);
  });

  it("is stopped together with its child processes", async () => {
    const spawning = AGENT.replace(
      "const State",
      `import { spawn } from "node:child_process"; console.log("started " + spawn("sleep", ["600"]).pid); const State`,
    );
    const received: string[] = [];
    const order = await specFor(
      { log: ({ message }) => received.push(message) },
      { ...PROJECT, "agent.mjs": spawning },
    );
    const ref = await start(order);
    const pids = () => received.flatMap((message) => /^started (\d+)$/.exec(message)?.[1] ?? []).map(Number);
    await until("it has started one", async () => pids().length > 0);
    await world.driver.stop(ref, { grace_ms: 10_000 });
    for (const pid of pids()) await until("it is gone", async () => !isThere(pid));
  });

  it("is ended by force when it does not end in its grace", async () => {
    const ignores_signals = `${AGENT}\nimport { isMainThread } from "node:worker_threads";`;
    const order = await specFor(
      { env: { NODE_OPTIONS: "--import ./ignore-signals.mjs" } },
      {
        ...PROJECT,
        "agent.mjs": ignores_signals,
        "ignore-signals.mjs": `const { on } = process;
process.on = process.addListener = function (name, listener) { return name === "SIGTERM" ? on.call(this, name, () => undefined) : on.call(this, name, listener); };`,
      },
    );
    const ref = await start(order);
    const asked_at = performance.now();
    await world.driver.stop(ref, { grace_ms: 300 });
    expect(performance.now() - asked_at).toBeGreaterThanOrEqual(300);
    await expect(fetch(`${ref.address}/ok`)).rejects.toThrow();
  });

  it("has the memory and the graph hosts that its limits specify", async () => {
    const order = await specFor({ resources: { cpu_limit: 1.5, memory_limit_mb: 333 } });
    const received = await ask(await start(order), order, {});
    const arguments_of = readFileSync(`/proc/${received.pid}/environ`, "utf8");
    expect(arguments_of).toContain("THREADMILL_HOST_MEMORY=333MiB");
  });

  it("is refused with an error message when its build was deleted", async () => {
    const order = await specFor({ artifact: "0".repeat(64) });
    await expect(world.driver.ensure(order)).rejects.toThrow("The build of this revision was removed");
    expect(await world.driver.list()).toEqual([]);
  });

  it("starts in a folder below the root of its source", async () => {
    const files = { "apps/one/langgraph.json": LANGGRAPH_JSON, "apps/one/agent.mjs": AGENT };
    const deployment_id = randomUUID();
    const config_path = "apps/one/langgraph.json";
    const { artifact } = await world.build(await packed(files), { deployment_id, config_path });
    const order = await specFor({ deployment_id, artifact, config_path });
    expect((await ask(await start(order), order, {})).type).toBe("ai");
  });
});

function isThere(pid: number): boolean {
  const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, "utf8") : "";
  return stat !== "" && !/\) Z /.test(stat);
}
