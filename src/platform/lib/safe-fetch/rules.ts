import { addressOfHost, isLoopbackAddress, isLoopbackHost, isPublicAddress } from "./addresses.ts";

/** What a service may be asked to fetch for a caller. */
export interface FetchRules {
  /** Permits http and https to loopback addresses, for development and tests. */
  allow_loopback: boolean;
}

/** Ends of names that are never public: networks at home and in companies, and clouds' metadata services. */
const PRIVATE_NAMES =
  /(^|\.)(localhost|local|localdomain|internal|intranet|private|lan|home|corp|home\.arpa|in-addr\.arpa|ip6\.arpa)$/;

/**
 * Why a URL may not be fetched, in one sentence, as far as its look tells; undefined when nothing is wrong with it. Where its
 * name leads is looked at when it is fetched.
 */
export function refusalOf(url: string, rules: FetchRules): string | undefined {
  if (!URL.canParse(url)) return "The URL must be a whole one, such as https://example.com/path.";
  const { protocol, username, password, port, hostname } = new URL(url);
  const local = rules.allow_loopback && isLoopbackHost(hostname);
  if (protocol !== "https:" && !(local && protocol === "http:")) return "The URL must begin with https://.";
  if (username !== "" || password !== "") return "The URL must not hold a user name or a password.";
  if (local) return undefined;
  if (!isPublicHost(hostname)) return "The URL must name a host on the public internet.";
  // The default port of https is empty. The other ports under 1024 belong to services that a request could be smuggled to.
  if (port !== "" && Number(port) < 1024) return "The URL must use port 443, or one from 1024 on.";
  return undefined;
}

/** By its look. The URL parser has already made `0x7f.1`, `2130706433` and full-width digits into `127.0.0.1`. */
function isPublicHost(hostname: string): boolean {
  const address = addressOfHost(hostname);
  if (address !== undefined) return isPublicAddress(address);
  // A name without a dot is of the own network; one with a dot at its end is an odd spelling of another.
  return /^[^.].*\.[^.]+$/.test(hostname) && !PRIVATE_NAMES.test(hostname);
}

/** Whether a connection may be made to an address of a name. Plain http stays on this machine. */
export const mayConnect = (address: string, protocol: string, rules: FetchRules): boolean =>
  (rules.allow_loopback && isLoopbackAddress(address)) || (protocol === "https:" && isPublicAddress(address));
