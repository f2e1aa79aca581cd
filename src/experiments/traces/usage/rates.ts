import type { ModelPrice } from "@pydantic/genai-prices";
import type { Details, RunUsage } from "./usage.ts";

/** A price of a workspace, in the format of the API. Prices are in dollars per token. */
export interface PriceEntry {
  id: string;
  name: string;
  match_pattern: string;
  match_path?: readonly string[] | null;
  prompt_cost: number | string;
  completion_cost: number | string;
  prompt_cost_details?: Readonly<Record<string, number | string>> | null;
  completion_cost_details?: Readonly<Record<string, number | string>> | null;
  provider?: string | null;
  /** ISO 8601. The price applies to runs that start at this time or later. */
  start_time?: string | null;
}

/**
 * Ascending tiers of a price. For prompts of more than `above` tokens, a token costs `atto` * 1e-18 dollars. Most prices have one tier.
 */
type Price = readonly { above: number; atto: bigint }[];

interface Side {
  base?: Price;
  details: ReadonlyMap<string, Price>;
}

export interface Rates {
  prompt: Side;
  completion: Side;
  /** The price of the request itself, in 1e-18 dollars. */
  request: bigint;
}

/** Converts 1e-18 dollars to 1e-12 dollars, rounded half up. */
export const picoOfAtto = (atto: bigint): number => Number((atto + 500_000n) / 1_000_000n);

const MAX_PRICE_CHARS = 40;

/** The price of one token in 1e-18 dollars, if `price` is the price of 10^`power` tokens. Undefined if `price` is not a decimal number. */
function attoOf(price: number | string, power = 0): bigint | undefined {
  const text = String(price);
  const match = text.length <= MAX_PRICE_CHARS && /^(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,2}))?$/i.exec(text);
  if (!match) return undefined;
  const [, whole = "", fraction = "", exponent = "0"] = match;
  const shift = 18 - power + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  return shift >= 0 ? digits * 10n ** BigInt(shift) : digits / 10n ** BigInt(-shift);
}

/**
 * Token details that clients send, with the built-in price that applies to them. Other details are charged at the price of their side
 * (prompt or completion).
 */
const PROMPT_PRICES = {
  cache_read: "cache_read_mtok",
  cache_read_over_200k: "cache_read_mtok",
  flex_cache_read: "cache_read_mtok",
  priority_cache_read: "cache_read_mtok",
  cache_creation: "cache_write_mtok",
  ephemeral_5m_input_tokens: "cache_write_mtok",
  ephemeral_1h_input_tokens: "cache_write_1h_mtok",
  ephemeral_1hr_input_tokens: "cache_write_1h_mtok",
  audio: "input_audio_mtok",
  image: "input_image_mtok",
  video: "input_video_mtok",
};
const COMPLETION_PRICES = {
  reasoning: "output_reasoning_mtok",
  audio: "output_audio_mtok",
  image: "output_image_mtok",
  video: "output_video_mtok",
};

export function ratesOfModel(model: ModelPrice): Rates {
  const price = (key: string): Price | undefined => {
    const value = model[key];
    if (value === undefined) return key === "cache_write_1h_mtok" ? price("cache_write_mtok") : undefined;
    const { base, tiers } = typeof value === "number" ? { base: value, tiers: [] } : value;
    const all = [{ start: -1, price: base }, ...tiers].sort((one, other) => one.start - other.start);
    return all.map((tier) => ({ above: tier.start, atto: attoOf(tier.price, 6) ?? 0n }));
  };
  const side = (base: string, names: Readonly<Record<string, string>>): Side => {
    const details = Object.entries(names).map(([name, key]) => [name, price(key)] as const);
    return { base: price(base), details: new Map(details.filter((entry): entry is [string, Price] => !!entry[1])) };
  };
  return {
    prompt: side("input_mtok", PROMPT_PRICES),
    completion: side("output_mtok", COMPLETION_PRICES),
    request: attoOf(typeof model.requests_kcount === "number" ? model.requests_kcount : 0, 3) ?? 0n,
  };
}

const MAX_PRICE = 1000n * 10n ** 18n;

type EntryPrices = Pick<
  PriceEntry,
  "prompt_cost" | "completion_cost" | "prompt_cost_details" | "completion_cost_details"
>;

/** Returns undefined when a price is not a decimal number from 0 to 1000. */
export function ratesOfEntry(entry: EntryPrices): Rates | undefined {
  let isValid = true;
  const price = (value: number | string): Price => {
    const atto = attoOf(value) ?? -1n;
    isValid &&= atto >= 0n && atto <= MAX_PRICE;
    return [{ above: -1, atto }];
  };
  const side = (base: number | string, details: PriceEntry["prompt_cost_details"]): Side => ({
    base: price(base),
    details: new Map(Object.entries(details ?? {}).map(([name, value]) => [name, price(value)])),
  });
  const prompt = side(entry.prompt_cost, entry.prompt_cost_details);
  const completion = side(entry.completion_cost, entry.completion_cost_details);
  return isValid ? { prompt, completion, request: 0n } : undefined;
}

interface SideCost {
  pico: number | null;
  details: Details | null;
}

const attoFor = (price: Price, prompt_tokens: number): bigint =>
  price.findLast(({ above }) => prompt_tokens > above)?.atto ?? 0n;

/**
 * Returns the cost that the client sent. Otherwise, the tokens of a detail that has its own price are charged at that price, and the
 * others at the price of the side.
 */
export function costOfSide(usage: RunUsage, name: "prompt" | "completion", side: Side | undefined): SideCost {
  const sent = usage[`${name}_cost`];
  if (sent !== null) return { pico: picoOf(sent), details: usage[`${name}_cost_details`] };
  const tokens = usage[`${name}_tokens`];
  if (tokens === null || !side?.base) return { pico: null, details: null };
  const tier = usage.prompt_tokens ?? 0;
  const counts = usage[`${name}_token_details`] ?? {};
  const details: Record<string, number> = {};
  let rest = tokens;
  let atto = 0n;
  for (const [detail, price] of side.details) {
    const count = detail === "cache_creation" ? uncountedCreation(counts, side) : countOf(counts, detail);
    if (count === 0) continue;
    const cost = BigInt(count) * attoFor(price, tier);
    details[detail] = usdOf(picoOfAtto(cost));
    rest -= count;
    atto += cost;
  }
  const pico = picoOfAtto(atto + BigInt(Math.max(0, rest)) * attoFor(side.base, tier));
  return { pico, details: rest < tokens ? details : null };
}

const countOf = (counts: Details, name: string): number => (Object.hasOwn(counts, name) ? (counts[name] ?? 0) : 0);

/** The cache creation tokens without a lifetime: some clients send the tokens of each lifetime in addition to their sum. */
const uncountedCreation = (counts: Details, side: Side): number =>
  LIFETIMES.filter((name) => side.details.has(name)).reduce(
    (rest, name) => Math.max(0, rest - countOf(counts, name)),
    countOf(counts, "cache_creation"),
  );

const LIFETIMES = ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "ephemeral_1hr_input_tokens"];

/** Dollars are added as integers in units of 1e-12 dollars: exact up to $9,007, and as precise as the original number above that. */
export const picoOf = (usd: number): number => Math.round(usd * 1e12);

export const usdOf = (pico: number): number => pico / 1e12;
