import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { restrictContainerTraffic } from "../../src/control-plane/drivers/docker/network.ts";
import type { DeployDriver, InstanceRef } from "../../src/control-plane/drivers/driver.ts";
import { PROJECT, temporaryFolder } from "../control/deployed-project.ts";
import { type DockerWorld, openDockerWorld } from "../control/docker-world.ts";
import { engineMissing, startEngine, type TestEngine } from "../support/docker-engine.ts";
import { until } from "../support/until.ts";

const METADATA = "169.254.169.254";
const OUTSIDE = "203.0.113.2";
const CONNECT =
  "net.connect({ host: process.argv[1], port: +process.argv[2] }).once('connect', () => process.exit(0)).once('error', () => process.exit(1)); setTimeout(() => process.exit(1), 2000)";
/** At port 80, at that of resolvers, and at what stands for the service's Postgres. */
const PORTS = [80, 53, 5499] as const;
const [HTTP, DNS, POSTGRES] = PORTS;
const LISTEN = `let left = ${PORTS.length}; for (const port of [${PORTS}]) net.createServer((one) => one.end()).listen(port, () => --left || console.log('listens'))`;

/** Finding 10 of the security review: containers reached each other, the host and the metadata service. */
describe.skipIf(engineMissing())("the network of a service", () => {
  let engine: TestEngine;
  let world: DockerWorld | undefined;
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
    process.env.PATH = `${programsIn(engine.pid)}:${process.env.PATH}`;
    world = await openDockerWorld("sqlite", { docker_socket: engine.socket, docker_network: undefined });
    const { driver } = world;
    [one, other] = await Promise.all([start(driver), start(driver)]);
    for (const ref of [one, other])
      await until("it listens", async () => (await reaches(ref, "127.0.0.1", 8000)) === true, 120_000);
  }, 300_000);
  afterAll(async () => {
    await world?.close();
    for (const server of servers) {
      const ended = once(server, "exit");
      server.kill("SIGKILL");
      await ended;
    }
    await engine.stop();
  }, 60_000);

  const start = (driver: DeployDriver) =>
    driver.ensure({
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

  it("is separate, created once, and named so that rules can be written for it", async () => {
    const [first, second] = [await onlyNetworkOf(one), await onlyNetworkOf(other)];
    expect(first.name).toMatch(/^threadmill-[0-9a-f-]{36}$/);
    expect(second.name).toBe(first.name);
    const network = await engine.docker.getNetwork(first.name).inspect();
    expect(network.Options?.["com.docker.network.bridge.name"]).toMatch(/^tm-[0-9a-f]{12}$/);
    const networks = await engine.docker.listNetworks();
    expect(networks.filter(({ Name }) => Name.startsWith("threadmill-"))).toHaveLength(1);
  });

  it("separates containers from each other, and permits outgoing connections", async () => {
    const { address } = await onlyNetworkOf(other);
    expect(await reaches(one, address, 8000)).toBe(false);
    expect(await reaches(one, OUTSIDE, HTTP)).toBe(true);
    serves(one);
  });

  it("separates containers from the machine and from the metadata service of a cloud, but not from its resolver", async () => {
    const { gateway } = await onlyNetworkOf(one);
    expect(await reaches(one, gateway, HTTP)).toBe(false);
    expect(await reaches(one, METADATA, HTTP)).toBe(false);
    expect(await reaches(one, METADATA, DNS)).toBe(true);
    expect(await reaches(one, OUTSIDE, HTTP)).toBe(true);
    serves(one);
  });

  it("leads to the service's Postgres on the machine, and closes what another call has opened", async () => {
    const { name, gateway } = await onlyNetworkOf(one);
    const { Options } = await engine.docker.getNetwork(name).inspect();
    const bridge = Options?.["com.docker.network.bridge.name"] as string;
    const close = (host: string) => restrictContainerTraffic(bridge, `postgres://${host}:${POSTGRES}/threadmill`);

    await close(ADDRESS);
    expect(await reaches(one, gateway, POSTGRES)).toBe(true);
    expect(await reaches(one, gateway, HTTP)).toBe(false);
    await close("192.0.2.1");
    expect(await reaches(one, gateway, POSTGRES)).toBe(false);
    serves(one);
    expect(
      onHost(["iptables", "-S", "INPUT"])
        .toString()
        .match(/-j tm-/g),
    ).toHaveLength(1);
  });
});

/** An address of this machine that containers reach. */
const ADDRESS = Object.values(networkInterfaces())
  .flatMap((at) => at ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address as string;

/** A folder with the programs of the firewall, for the machine whose network namespace that of a process is. */
function programsIn(pid: number): string {
  const folder = temporaryFolder();
  for (const program of ["ip", "iptables", "iptables-restore"]) {
    const path = execFileSync("sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).trim();
    writeFileSync(join(folder, program), `#!/bin/sh\nexec nsenter --net=/proc/${pid}/ns/net ${path} "$@"\n`);
    chmodSync(join(folder, program), 0o755);
  }
  return folder;
}

const inNamespace = (pid: number, [program = "", ...args]: readonly string[]) =>
  execFileSync("nsenter", [`--net=/proc/${pid}/ns/net`, program, ...args], { stdio: "pipe", timeout: 20_000 });

/** A server at {@link PORTS} of a network namespace. */
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
