import { promises as dns } from "node:dns";
import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

export interface Address {
  address: string;
  family: number;
}

/** Resolves a name to all its addresses. Rejects if it has none. */
export type Lookup = (hostname: string) => Promise<readonly Address[]>;

export const systemLookup: Lookup = (hostname) => dns.lookup(hostname, { all: true });

const blockList = (family: "ipv4" | "ipv6", ...subnets: string[]): BlockList => {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [network = "", prefix] = subnet.split("/");
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
};

/** Special-purpose addresses (RFC 6890), multicast and reserved addresses. */
const SPECIAL_V4 = blockList(
  "ipv4",
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
);

/** The public range of IPv6 (RFC 4291). Loopback, fc00::/7, fe80::/10, ff00::/8 and v4-mapped addresses are outside. */
const GLOBAL_V6 = blockList("ipv6", "2000::/3");

/** Exceptions in the public range: protocol assignments including Teredo, documentation, and 6to4, which reaches any IPv4 address. */
const SPECIAL_V6 = blockList("ipv6", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20");

/** NAT64 (RFC 6052): the last 32 bits are an IPv4 address. */
const NAT64 = blockList("ipv6", "64:ff9b::/96");

const LOOPBACK_V4 = blockList("ipv4", "127.0.0.0/8");
const LOOPBACK_V6 = blockList("ipv6", "::1/128");

/** Whether an IP address, without brackets, is a loopback address. */
export function isLoopbackAddress(address: string): boolean {
  if (isIPv4(address)) return LOOPBACK_V4.check(address);
  // BlockList also checks a v4-mapped address against the IPv4 subnets of the list, but LOOPBACK_V6 has none.
  return isPlainV6(address) && LOOPBACK_V6.check(address, "ipv6");
}

/** Whether an IP address, without brackets, is public. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !SPECIAL_V4.check(address);
  if (!isPlainV6(address)) return false;
  if (NAT64.check(address, "ipv6")) return isPublicAddress(lastIPv4Of(address));
  return GLOBAL_V6.check(address, "ipv6") && !SPECIAL_V6.check(address, "ipv6");
}

/** Whether an address is IPv6 without a zone. An address with a zone (`fe80::1%eth0`) belongs to a local network. */
const isPlainV6 = (address: string): boolean => isIPv6(address) && !address.includes("%");

function lastIPv4Of(address: string): string {
  // The URL parser writes groups without leading zeros, and `::` for a run of zeros.
  const [high = "", low = ""] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split(":").slice(-2);
  const number = Number.parseInt(high || "0", 16) * 2 ** 16 + Number.parseInt(low || "0", 16);
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");
}

/** `localhost` and its subdomains are this machine, regardless of DNS (RFC 6761, section 6.3). */
export const isLoopbackName = (hostname: string): boolean => /^(.+\.)?localhost$/.test(hostname);

/** Whether the host of a URL is a loopback name or address. */
export const isLoopbackHost = (hostname: string): boolean =>
  isLoopbackName(hostname) || isLoopbackAddress(withoutBrackets(hostname));

/** Returns the IP address in the host of a URL; undefined for a name. */
export function addressOfHost(hostname: string): string | undefined {
  const bare = withoutBrackets(hostname);
  return isIP(bare) ? bare : undefined;
}

const withoutBrackets = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");

/** Whether a host name or address, with or without brackets, is a literal loopback address or `localhost`. */
export const isLoopback = (host: string): boolean => /^(localhost|127(\.\d+){3}|::1|\[::1\])$/.test(host);
