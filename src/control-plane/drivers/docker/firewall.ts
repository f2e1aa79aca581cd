import { execFile } from "node:child_process";
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import { promisify } from "node:util";

const run = promisify(execFile);
const TIMEOUT_MS = 10_000;
/** Another program may be changing the rules: wait for it. */
const WAIT = ["--wait", "5"];

const LINK_LOCAL = "169.254.0.0/16";

/**
 * Sets rules of the machine's firewall by which containers at a bridge open no connection to the machine itself, other than to the
 * service's own Postgres, nor to link-local addresses (metadata services of clouds), other than to a resolver there.
 *
 * The rules are in two chains named after the bridge, which each call replaces as a whole. `INPUT` and Docker's `DOCKER-USER` get a
 * jump in front when they have none.
 *
 * @throws Error without the rights of root, without `iptables` and `ip`, or when the bridge is not on this machine
 */
export async function closeMachine(bridge: string, database_url: string | undefined): Promise<void> {
  await run("ip", ["link", "show", "dev", bridge], { timeout: TIMEOUT_MS });
  const [to_machine, to_others] = [`${bridge}-host`, `${bridge}-out`];
  const database_port = await portOnThisMachine(database_url);
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

/** The port of a database that one of this machine's own addresses leads to. */
async function portOnThisMachine(url: string | undefined): Promise<number | undefined> {
  if (url === undefined) return undefined;
  const { hostname, port } = new URL(url);
  const own = new Set(Object.values(networkInterfaces()).flatMap((at) => at?.map(({ address }) => address) ?? []));
  const found = await lookup(hostname, { all: true }).catch(() => []);
  return found.some(({ address }) => own.has(address)) ? Number(port || 5432) : undefined;
}
