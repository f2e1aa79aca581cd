import type { LookupFunction } from "node:net";
import { type Address, addressOfHost, isLoopbackName, type Lookup } from "./addresses.ts";
import { FetchFailedError, FetchRefusedError } from "./errors.ts";
import type { Hop } from "./redirects.ts";
import { type FetchRules, mayConnect } from "./rules.ts";

export interface FetchLimits {
  /** From the first look at the name to the last byte, over all redirects. */
  timeout_ms: number;
  /** Of the body, once it is unpacked. */
  max_bytes: number;
}

/** What all requests share that come of one. */
export interface Fetching {
  rules: FetchRules;
  limits: FetchLimits;
  lookup: Lookup;
  signal: AbortSignal;
}

/** One request on a connection of its own, and the whole of its answer. A redirect is an answer. */
export async function send({ rules, limits, lookup, signal }: Fetching, hop: Hop): Promise<Response> {
  const addresses = await vettedAddresses(hop.url, rules, unlessAborted(resolve(hop.url.hostname, lookup), signal));
  // Loaded when something is first fetched: 60 ms that a start need not take.
  const { Agent, fetch } = await import("undici");
  const agent = new Agent({ pipelining: 0, connect: { lookup: answering(addresses), timeout: limits.timeout_ms } });
  try {
    const { method, body = null } = hop;
    const headers = [...hop.headers] as [string, string][];
    const answer = await fetch(hop.url, { method, headers, body, redirect: "manual", dispatcher: agent, signal });
    const bytes = await readBody(answer.body, limits.max_bytes);
    const { status, statusText } = answer;
    const whole = new Response(mayHaveBody(status) ? bytes : null, {
      status,
      statusText,
      headers: [...answer.headers] as [string, string][],
    });
    return Object.defineProperty(whole, "url", { value: hop.url.href });
  } finally {
    await agent.destroy();
  }
}

const mayHaveBody = (status: number): boolean => ![204, 205, 304].includes(status);

/** All addresses of a host. If the rules forbid one of them, all are refused: which one is used would be up to chance. */
async function vettedAddresses(
  { protocol }: URL,
  rules: FetchRules,
  resolving: Promise<readonly Address[]>,
): Promise<readonly Address[]> {
  const addresses = await resolving;
  if (addresses.length === 0 || !addresses.every(({ address }) => mayConnect(address, protocol, rules))) {
    throw new FetchRefusedError("The URL must name a host on the public internet.");
  }
  return addresses;
}

async function resolve(hostname: string, lookup: Lookup): Promise<readonly Address[]> {
  const address = addressOfHost(hostname);
  if (address !== undefined) return [{ address, family: address.includes(":") ? 6 : 4 }];
  return isLoopbackName(hostname) ? LOOPBACK : lookup(hostname);
}

const LOOPBACK: readonly Address[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/** What a connection asks for the address of its host: it hears of those that were vetted, and of nothing newer. */
const answering =
  (addresses: readonly Address[]): LookupFunction =>
  (_hostname, { all }, answer) => {
    const [first] = addresses;
    if (all) answer(null, [...addresses]);
    else if (first) answer(null, first.address, first.family);
  };

/** A resolver cannot be called back, but waited for no longer. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  return Promise.race([work, aborted]);
}

async function readBody(body: AsyncIterable<Uint8Array> | null, max_bytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.byteLength;
    if (size > max_bytes) throw new FetchFailedError("too_large", `The answer is larger than ${max_bytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}
