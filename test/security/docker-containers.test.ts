import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { InstanceRef, InstanceSpec } from "../../src/control-plane/drivers/driver.ts";
import { PROJECT } from "../control/deployed-project.ts";
import { type DockerWorld, openDockerWorld } from "../control/docker-world.ts";
import { answersOk, ask } from "../control/driver-conformance.ts";
import { engineMissing, startEngine, type TestEngine } from "../support/docker-engine.ts";
import { instanceSpec } from "../support/instance-spec.ts";
import { type RecordedSocket, recordSocket } from "../support/recorded-socket.ts";

/** Finding 10 of the security review: what the engine is told, and what a container may do. */
describe.skipIf(engineMissing())("the container of a deployment", () => {
  let engine: TestEngine;
  let recorded: RecordedSocket;
  let world: DockerWorld;
  beforeAll(async () => {
    engine = await startEngine();
    recorded = await recordSocket(engine.socket);
    await engine.imageOf("localhost/agents/good:1", PROJECT);
  }, 180_000);
  afterAll(async () => {
    await recorded.stop();
    await engine.stop();
  }, 60_000);
  beforeEach(async () => {
    world = await openDockerWorld("sqlite", { docker_socket: recorded.socket, docker_network: undefined });
  });
  afterEach(() => world.close(), 60_000);

  const specFor = (more: Partial<InstanceSpec> = {}) => instanceSpec({ artifact: "localhost/agents/good:1", ...more });
  const inspect = ({ handle }: InstanceRef) => engine.docker.getContainer(handle).inspect();
  /** What a program sees that is started in the container. */
  const evaluate = async ({ handle }: InstanceRef, code: string): Promise<unknown> => {
    const { status, output } = await engine.execIn(handle, ["/usr/bin/node", "-p", `JSON.stringify(${code})`]);
    if (status !== 0) throw new Error(output);
    return JSON.parse(output);
  };
  const written = (ref: InstanceRef, file: string) =>
    evaluate(ref, `(() => { try { fs.writeFileSync("${file}", "x"); return true } catch (e) { return e.code } })()`);
  /** The image with other settings. */
  const variant = async (tag: string, config: { User?: string; Labels?: Record<string, string> }) => {
    const container = await engine.docker.createContainer({ Image: "localhost/agents/good:1", ...config });
    await container.commit({ repo: "localhost/agents/variant", tag });
    await container.remove();
    return `localhost/agents/variant:${tag}`;
  };
  const identity = (ref: InstanceRef) => evaluate(ref, "[process.getuid(), process.getgid()]");

  it("hands its secrets to the engine in bodies, not in addresses", async () => {
    const order = specFor({ env: { OPENAI_API_KEY: `sk-${randomUUID()}` } });
    const pinned = { deployment_id: order.deployment_id, image: order.artifact, pinned: false };
    const io = { log: () => undefined, signal: new AbortController().signal };
    await world.driver.pin?.(pinned, io);
    const ref = await world.driver.ensure(order);
    await answersOk(ref);
    await world.driver.probe(ref);
    await world.driver.stop(ref, { grace_ms: 1_000 });
    await world.driver.remove({ deployment_id: order.deployment_id, artifacts: [] });

    for (const secret of [order.env.OPENAI_API_KEY, order.api_key]) expect(recorded.sent()).toContain(secret);
    const urls = recorded.requests().map((request) => decodeURIComponent(request));
    expect(urls).toContain(`POST /containers/create?name=threadmill-${order.instance_id}`);
    expect(urls).toContain("POST /networks/create?");
    expect(urls).toContain(`POST /containers/${ref.handle}/stop?t=1`);
    expect(urls.join("\n")).not.toMatch(/sk-|key-|password|Env|HostConfig|_body|_query/);
  });

  it("has no capabilities, gains none, runs as an unprivileged user, and writes only to /tmp and its data folder", async () => {
    const order = specFor();
    const ref = await world.driver.ensure(order);
    await answersOk(ref);
    const status = (await evaluate(ref, 'fs.readFileSync("/proc/self/status", "utf8")')) as string;
    const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(status)?.[1];
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) expect(field(set), set).toMatch(/^0+$/);
    expect(field("NoNewPrivs")).toBe("1");
    expect(await identity(ref)).toEqual([65534, 65534]);
    expect(await evaluate(ref, "os.homedir()")).toBe("/tmp");
    for (const folder of ["", "/app", "/app/project", "/etc"]) expect(await written(ref, `${folder}/x`)).toBe("EROFS");
    for (const folder of ["/tmp", "/threadmill-data"]) expect(await written(ref, `${folder}/x`)).toBe(true);
    expect((await ask(ref, order, {})).type).toBe("ai");
  });

  it("has limits where its deployment names none, and those that it names", async () => {
    const { NCPU } = await engine.docker.info();
    const ref = await world.driver.ensure(specFor());
    const limits = { NanoCpus: Math.min(2, NCPU) * 1e9, Memory: 2 ** 31, MemorySwap: 2 ** 31, PidsLimit: 1024 };
    expect((await inspect(ref)).HostConfig).toMatchObject(limits);
    const named = await world.driver.ensure(specFor({ resources: { cpu_limit: 0.5, memory_limit_mb: 4096 } }));
    expect((await inspect(named)).HostConfig).toMatchObject({ NanoCpus: 5e8, Memory: 2 ** 32, MemorySwap: 2 ** 32 });
  });

  it.each([
    ["1000:1000", [1000, 1000]],
    ["0", [65534, 65534]],
    ["root:root", [65534, 65534]],
    ["+0:0", [65534, 65534]],
  ])("runs as the user of its image, unless that is root: %s", async (User, ids) => {
    const artifact = await variant(randomUUID(), { User });
    const ref = await world.driver.ensure(specFor({ artifact }));
    await answersOk(ref);
    expect(await identity(ref)).toEqual(ids);
    expect(await written(ref, "/threadmill-data/x")).toBe(true);
  });

  it("writes to its root file system when the label of its image says so", async () => {
    const artifact = await variant("writable", { Labels: { "threadmill.writable-root": "true" } });
    const ref = await world.driver.ensure(specFor({ artifact }));
    expect((await inspect(ref)).HostConfig.ReadonlyRootfs).toBe(false);
    expect(await written(ref, "/app/project/x")).toBe(true);
  });

  it("finds what an earlier version has written as root", async () => {
    const order = specFor();
    const folder = join(world.folder, "data", order.deployment_id);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "before"), "before", { mode: 0o600 });
    const ref = await world.driver.ensure(order);
    expect(await written(ref, "/threadmill-data/before")).toBe(true);
    expect(existsSync(folder)).toBe(false);
  });

  it("has its data where no other user of the machine has access, because it may write programs that run as their owner", async () => {
    const order = specFor();
    await world.driver.ensure(order);
    expect(existsSync(join(world.folder, "docker", "data", order.deployment_id))).toBe(true);
    expect(statSync(join(world.folder, "docker")).mode & 0o777).toBe(0o700);
  });

  it("is not looked for at a port that a label of its image names", async () => {
    const artifact = await variant("port", { Labels: { "threadmill.port": "22" } });
    const ref = await world.driver.ensure(specFor({ artifact }));
    expect(ref.address).toMatch(/^http:\/\/127\.0\.0\.1:\d{4,}$/);
    expect(await world.driver.list()).toEqual([ref]);
    await answersOk(ref);
  });
});
