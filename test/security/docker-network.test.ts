import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { InstanceRef } from "../../src/control/driver.ts";
import { PROJECT } from "../control/deployed-project.ts";
import { type DockerWorld, openDockerWorld } from "../control/docker-world.ts";
import { engineMissing, startEngine, type TestEngine } from "../support/docker-engine.ts";
import { until } from "../support/until.ts";

const PAGE = resolve(import.meta.dirname, "../../docs/security.md");
/** What the page has operators run. */
const RULES = readFileSync(PAGE, "utf8")
  .split("\n")
  .filter((line) => line.startsWith("iptables "));

const METADATA = "169.254.169.254";
const OUTSIDE = "203.0.113.2";
const CONNECT =
  "net.connect({ host: process.argv[1], port: +process.argv[2] }).once('connect', () => process.exit(0)).once('error', () => process.exit(1)); setTimeout(() => process.exit(1), 2000)";
const LISTEN = "net.createServer((one) => one.end()).listen(80, () => console.log('listens'))";

/** Finding 10 of the security review: containers reached each other, the host and the metadata service. */
describe.skipIf(engineMissing())("the network of a service", () => {
  let engine: TestEngine;
  let world: DockerWorld;
  let servers: ChildProcess[];
  let one: InstanceRef;
  let other: InstanceRef;
  beforeAll(async () => {
    engine = await startEngine({ apart: true });
    await engine.imageOf("localhost/agents/good:1", PROJECT);
    const host = await serve(["nsenter", `--net=/proc/${engine.pid}/ns/net`]);
    const outside = await serve(["unshare", "--net"]);
    servers = [host, outside];
    connect(engine.pid, outside.pid as number);
    world = await openDockerWorld("sqlite", { docker_socket: engine.socket, docker_network: undefined });
    [one, other] = await Promise.all([start(), start()]);
    for (const ref of [one, other])
      await until("it listens", async () => (await reaches(ref, "127.0.0.1", 8000)) === true, 120_000);
  }, 300_000);
  afterAll(async () => {
    await world.close();
    for (const server of servers) {
      const ended = once(server, "exit");
      server.kill("SIGKILL");
      await ended;
    }
    await engine.stop();
  }, 60_000);

  const start = () =>
    world.driver.ensure({
      instance_id: randomUUID(),
      deployment_id: randomUUID(),
      revision_id: randomUUID(),
      tenant_id: randomUUID(),
      replica: 0,
      artifact: "localhost/agents/good:1",
      config_path: undefined,
      api_key: `key-${randomUUID()}`,
      database_password: "a-password-0123456789",
      env: {},
      resources: { cpu_limit: undefined, memory_limit_mb: undefined },
      log: () => undefined,
    });
  const reaches = async ({ handle }: InstanceRef, host: string, port: number) =>
    (await engine.execIn(handle, ["/usr/bin/node", "-e", CONNECT, host, String(port)])).status === 0;
  const onlyNetworkOf = async ({ handle }: InstanceRef) => {
    const { NetworkSettings } = await engine.docker.getContainer(handle).inspect();
    const [[name, settings] = []] = Object.entries(NetworkSettings.Networks);
    return { name: name as string, address: settings?.IPAddress as string, gateway: settings?.Gateway as string };
  };
  const onHost = (command: readonly string[]) => inNamespace(engine.pid, command);
  const serves = ({ address }: InstanceRef) => {
    const { hostname, port } = new URL(address);
    return onHost([process.execPath, "-e", CONNECT, hostname, port]);
  };

  it("is its own, made once, and named so that rules can be written for it", async () => {
    const [first, second] = [await onlyNetworkOf(one), await onlyNetworkOf(other)];
    expect(first.name).toMatch(/^threadmill-[0-9a-f-]{36}$/);
    expect(second.name).toBe(first.name);
    const network = await engine.docker.getNetwork(first.name).inspect();
    expect(network.Options?.["com.docker.network.bridge.name"]).toMatch(/^tm-[0-9a-f]{12}$/);
    const networks = await engine.docker.listNetworks();
    expect(networks.filter(({ Name }) => Name.startsWith("threadmill-"))).toHaveLength(1);
  });

  it("keeps containers from each other, and leaves them the way out", async () => {
    const { address } = await onlyNetworkOf(other);
    expect(await reaches(one, address, 8000)).toBe(false);
    expect(await reaches(one, OUTSIDE, 80)).toBe(true);
    serves(one);
  });

  it("reaches the host and the metadata service until the operator has set the rules of docs/security.md", async () => {
    const { gateway } = await onlyNetworkOf(one);
    // What the page says that the service does not do.
    expect(await reaches(one, gateway, 80)).toBe(true);
    expect(await reaches(one, METADATA, 80)).toBe(true);

    expect(RULES.length).toBeGreaterThan(1);
    for (const rule of RULES) onHost(["sh", "-c", rule]);
    expect(await reaches(one, gateway, 80)).toBe(false);
    expect(await reaches(one, METADATA, 80)).toBe(false);
    expect(await reaches(one, OUTSIDE, 80)).toBe(true);
    serves(one);
  });
});

const inNamespace = (pid: number, [program = "", ...args]: readonly string[]) =>
  execFileSync("nsenter", [`--net=/proc/${pid}/ns/net`, program, ...args], { stdio: "pipe", timeout: 20_000 });

/** A server at port 80 of a network namespace. */
async function serve([program = "", ...args]: readonly string[]): Promise<ChildProcess> {
  const server = spawn(program, [...args, process.execPath, "-e", LISTEN], { stdio: ["ignore", "pipe", "inherit"] });
  await once(server.stdout as NodeJS.ReadableStream, "data");
  return server;
}

/** A cable between two namespaces; at the other end is the metadata service of a cloud, and the rest of the world. */
function connect(engine: number, outside: number): void {
  const [near, far] = [`tn${engine}`, `tf${engine}`];
  const veth = ["add", near, "netns", String(engine), "type", "veth", "peer", "name", far, "netns", String(outside)];
  execFileSync("ip", ["link", ...veth]);
  const set = (pid: number, name: string, addresses: readonly string[]) => {
    for (const address of addresses) inNamespace(pid, ["ip", "address", "add", address, "dev", name]);
    inNamespace(pid, ["ip", "link", "set", name, "up"]);
  };
  set(engine, near, ["169.254.0.1/16", "203.0.113.1/24"]);
  set(outside, far, [`${METADATA}/16`, `${OUTSIDE}/24`]);
}
