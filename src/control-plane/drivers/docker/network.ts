import { execFile } from "node:child_process";
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { promisify } from "node:util";
import type { NetworkCreateOptions, NetworkInspectInfo } from "dockerode";
import { LABELS } from "./container.ts";
import { type Engine, separateParts, undefinedIfMissing } from "./engine.ts";

export const ownNetworkName = (service_id: string): string => `threadmill-${service_id}`;

/** Returns the name of the network's bridge interface, which firewall rules match. Linux allows at most 15 characters. */
export const bridgeOf = (service_id: string): string => `tm-${service_id.replaceAll("-", "").slice(0, 12)}`;

/** Creates the network of the service if it does not exist. Its containers cannot connect to each other. */
export async function ensureOwnNetwork(engine: Engine, service_id: string): Promise<void> {
  const Name = ownNetworkName(service_id);
  const find = (): Promise<NetworkInspectInfo | undefined> =>
    engine.call((docker) => undefinedIfMissing(docker.getNetwork(Name).inspect()));
  if (await find()) return;
  const options = separateParts<NetworkCreateOptions>(
    {},
    {
      Name,
      Driver: "bridge",
      CheckDuplicate: true,
      // The rules that isolate containers apply to IPv4 only.
      EnableIPv6: false,
      Labels: { [LABELS.service]: service_id },
      Options: {
        "com.docker.network.bridge.name": bridgeOf(service_id),
        "com.docker.network.bridge.enable_icc": "false",
        "com.docker.network.bridge.host_binding_ipv4": "127.0.0.1",
      },
    },
  );
  try {
    await engine.call((docker) => docker.createNetwork(options));
  } catch (error) {
    // A concurrent start may have created the network.
    if (!(await find())) throw error;
  }
}

const run = promisify(execFile);
const TIMEOUT_MS = 10_000;
/** Waits up to 5 s for the lock of iptables, because another program may be changing the rules. */
const WAIT = ["--wait", "5"];

const LINK_LOCAL = "169.254.0.0/16";

/**
 * Blocks connections from the containers of a bridge to this machine and to link-local addresses, such as cloud metadata services. Two
 * exceptions are allowed: the service's Postgres on this machine, and DNS at link-local addresses.
 *
 * The rules are in two chains named after the bridge, which each call replaces as a whole. `INPUT` and Docker's `DOCKER-USER` get a rule
 * that jumps to the respective chain, unless the rule exists.
 *
 * @throws Error if the service is not root, `iptables` or `ip` is missing, or the bridge is not on this machine
 */
export async function restrictContainerTraffic(bridge: string, database_url: string | undefined): Promise<void> {
  await run("ip", ["link", "show", "dev", bridge], { timeout: TIMEOUT_MS });
  const [to_machine, to_others] = [`${bridge}-host`, `${bridge}-out`];
  const database_port = await localDatabasePort(database_url);
  const restore = run("iptables-restore", [...WAIT, "--noflush"], { timeout: TIMEOUT_MS });
  restore.child.stdin?.end(`*filter
:${to_machine} - [0:0]
:${to_others} - [0:0]
-A ${to_machine} -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN
${database_port === undefined ? "" : `-A ${to_machine} -p tcp --dport ${database_port} -j RETURN`}
-A ${to_machine} -j REJECT
-A ${to_others} -d ${LINK_LOCAL} -p udp --dport 53 -j RETURN
-A ${to_others} -d ${LINK_LOCAL} -p tcp --dport 53 -j RETURN
-A ${to_others} -d ${LINK_LOCAL} -j REJECT
COMMIT
`);
  await restore;
  await jump("INPUT", bridge, to_machine);
  await jump("DOCKER-USER", bridge, to_others);
}

async function jump(from: string, bridge: string, to: string): Promise<void> {
  const rule = [from, "--in-interface", bridge, "--jump", to];
  const iptables = (command: string) => run("iptables", [...WAIT, command, ...rule], { timeout: TIMEOUT_MS });
  await iptables("--check").catch(() => iptables("--insert"));
}

/** Returns the port of the database if it runs on this machine; otherwise undefined. */
async function localDatabasePort(url: string | undefined): Promise<number | undefined> {
  if (url === undefined) return undefined;
  const { hostname, port } = new URL(url);
  const local = new Set(Object.values(networkInterfaces()).flatMap((at) => at?.map(({ address }) => address) ?? []));
  const found = await lookup(hostname, { all: true }).catch(() => []);
  return found.some(({ address }) => local.has(address)) ? Number(port || 5432) : undefined;
}
