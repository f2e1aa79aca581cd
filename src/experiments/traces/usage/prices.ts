import type { calcPrice } from "@pydantic/genai-prices";
import type { RE2JS } from "re2js";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { microsecondsOf } from "../../../platform/lib/times.ts";
import {
  costOfSide,
  type PriceEntry,
  picoOf,
  picoOfAtto,
  type Rates,
  ratesOfEntry,
  ratesOfModel,
  usdOf,
} from "./rates.ts";
import type { RunUsage } from "./usage.ts";

export type RunCosts = Pick<
  RunUsage,
  "prompt_cost" | "completion_cost" | "total_cost" | "prompt_cost_details" | "completion_cost_details"
>;

export interface RunModel {
  provider: string | null;
  model: string | null;
  /** Invocation parameters, in which the `match_path` of a price is looked up. Null for runs with `ls_model_name`. */
  params: JsonObject | null;
}

export const MODEL_PATH = ["model", "model_name", "model_id", "model_path", "endpoint_name"];
const MAX_MODEL_CHARS = 200;

export function modelOf(metadata: unknown, invocation_params: unknown): RunModel {
  const { ls_provider, ls_model_name } = isObject(metadata) ? metadata : {};
  const provider = nameOf(ls_provider);
  const model = nameOf(ls_model_name);
  if (model !== null || !isObject(invocation_params)) return { provider, model, params: null };
  return { provider, model: firstName(invocation_params, MODEL_PATH), params: invocation_params };
}

const nameOf = (value: unknown): string | null =>
  typeof value === "string" && value !== "" && value.length <= MAX_MODEL_CHARS ? value : null;

function firstName(params: JsonObject, path: readonly string[]): string | null {
  for (const key of path) {
    const name = Object.hasOwn(params, key) ? nameOf(params[key]) : null;
    if (name !== null) return name;
  }
  return null;
}

const MAX_PATTERN_CHARS = 200;
/** The maximum size of a compiled pattern. Its first match of 200 characters takes 0.7 ms, each further match a few microseconds. */
const MAX_PROGRAM = 300;

interface MapEntry {
  pattern: RE2JS;
  path: readonly string[];
  provider: string | null;
  start_us: number;
  rates: Rates;
}

/** The prices of a workspace. Patterns are compiled once, and the matches of each model name are cached. */
export class PriceMap {
  readonly #entries: readonly MapEntry[];
  readonly #keys: readonly string[];
  readonly #matches = new BoundedCache<readonly MapEntry[]>();

  /** @param entries newest start first */
  constructor(entries: readonly MapEntry[]) {
    this.#entries = entries;
    this.#keys = [...new Set(entries.flatMap(({ path }) => path))];
  }

  ratesOf({ provider, model, params }: RunModel, start_us: number): Rates | undefined {
    if (this.#entries.length === 0) return undefined;
    const names = params ? this.#keys.map((key) => nameOf(params[key])) : model;
    const matches = this.#matches.get(JSON.stringify([provider, names]), () =>
      this.#entries.filter((entry) => {
        const name = params ? firstName(params, entry.path) : model;
        return name !== null && (entry.provider ?? provider) === provider && entry.pattern.test(name);
      }),
    );
    return matches.find((entry) => entry.start_us <= start_us)?.rates;
  }
}

/** Loads the built-in prices (800 KB of source) and the matcher (260 KB) on first use: services without model runs need neither. */
export async function loadPrices(): Promise<Prices> {
  const [{ calcPrice }, { RE2JS }] = await Promise.all([import("@pydantic/genai-prices"), import("re2js")]);
  return new Prices(calcPrice, RE2JS);
}

export class Prices {
  readonly #calcPrice: typeof calcPrice;
  readonly #re2: typeof RE2JS;
  readonly #builtin = new BoundedCache<{ rates: Rates; changes: boolean } | null>();

  constructor(calc: typeof calcPrice, re2: typeof RE2JS) {
    this.#calcPrice = calc;
    this.#re2 = re2;
  }

  /** Invalid entries are omitted. */
  mapOf(entries: readonly PriceEntry[]): PriceMap {
    const compiled = entries.map((entry) => this.#compile(entry)).filter((entry) => typeof entry !== "string");
    return new PriceMap(compiled.sort((one, other) => other.start_us - one.start_us));
  }

  /** The reason why an entry is invalid; undefined for a valid entry. */
  faultOf(entry: PriceEntry): string | undefined {
    const compiled = this.#compile(entry);
    return typeof compiled === "string" ? compiled : undefined;
  }

  /** RE2 takes linear time: it does not backtrack, and patterns that require backtracking (lookarounds, back references) do not compile. */
  #compile({ match_pattern, match_path, provider, start_time, ...entry }: PriceEntry): MapEntry | string {
    const rates = ratesOfEntry(entry);
    if (!rates) return "prices must be decimal amounts of at most 1000 US dollars per token";
    const start_us = start_time ? microsecondsOf(start_time) : 0;
    if (start_us === undefined) return "start_time must be an ISO 8601 time";
    if (match_pattern.length > MAX_PATTERN_CHARS) return `match_pattern has more than ${MAX_PATTERN_CHARS} characters`;
    try {
      const pattern = this.#re2.compile(match_pattern);
      if (pattern.programSize() > MAX_PROGRAM)
        return "match_pattern is too complex: simplify it, for example with + or * instead of repetition counts";
      return { pattern, path: match_path ?? MODEL_PATH, provider: provider || null, start_us, rates };
    } catch (error) {
      return `match_pattern is not a regular expression in RE2 syntax: ${(error as Error).message}`;
    }
  }

  /** Keeps costs that the client sent. Computes the others with the workspace's price or, if there is none, with the built-in price. */
  costOf(usage: RunUsage | undefined, model: RunModel, start_us: number, map: PriceMap): RunCosts | undefined {
    if (!usage) return undefined;
    const hasTokens = (usage.prompt_tokens ?? usage.completion_tokens) !== null;
    const rates = hasTokens ? (map.ratesOf(model, start_us) ?? this.#builtinRates(model, start_us)) : undefined;
    const prompt = costOfSide(usage, "prompt", rates?.prompt);
    const completion = costOfSide(usage, "completion", rates?.completion);
    if ((prompt.pico ?? completion.pico ?? usage.total_cost) === null) return undefined;
    const isSent = usage.prompt_cost !== null && usage.completion_cost !== null;
    const request = isSent ? 0 : picoOfAtto(rates?.request ?? 0n);
    const sum = (prompt.pico ?? 0) + (completion.pico ?? 0) + request;
    return {
      prompt_cost: prompt.pico === null ? null : usdOf(prompt.pico),
      completion_cost: completion.pico === null ? null : usdOf(completion.pico),
      total_cost: usdOf(usage.total_cost === null ? sum : picoOf(usage.total_cost)),
      prompt_cost_details: prompt.details,
      completion_cost_details: completion.details,
    };
  }

  /** `calcPrice` takes 80 to 800 µs, mostly to find the model and to check its units, so its results are cached. */
  #builtinRates({ provider, model }: RunModel, start_us: number): Rates | undefined {
    if (model === null) return undefined;
    const key = JSON.stringify([provider, model]);
    const minute = Math.floor(start_us / 60e6);
    const found = this.#builtin.get(key, () => this.#lookUp(provider, model, minute));
    if (!found?.changes) return found?.rates;
    return this.#builtin.get(`${minute} ${key}`, () => this.#lookUp(provider, model, minute))?.rates;
  }

  #lookUp(provider: string | null, model: string, minute: number): { rates: Rates; changes: boolean } | null {
    const providerId = provider === null ? undefined : (PROVIDERS.get(provider.toLowerCase()) ?? provider);
    try {
      const options = { providerId, timestamp: new Date(minute * 60e3) };
      const found = this.#calcPrice({}, model.replace(/^models\//, ""), options);
      return found && { rates: ratesOfModel(found.model_price), changes: Array.isArray(found.model.prices) };
    } catch {
      return null;
    }
  }
}

/** Provider names in LangChain and OpenTelemetry that the price package does not recognize. */
const PROVIDERS: ReadonlyMap<string, string> = new Map([
  ["azure_openai", "azure"],
  ["azure_ai", "azure"],
  ["azure.ai.openai", "azure"],
  ["azure.ai.inference", "azure"],
  ["gcp.gen_ai", "google"],
  ["x_ai", "x-ai"],
  ["fireworks_ai", "fireworks"],
  ["togetherai", "together"],
]);

const MAX_CACHED = 5_000;

/** A cache that is cleared when it is full. Its size must be limited, because clients choose the model names. */
class BoundedCache<V> {
  readonly #values = new Map<string, V>();

  get(key: string, compute: () => V): V {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    if (this.#values.size === MAX_CACHED) this.#values.clear();
    const value = compute();
    this.#values.set(key, value);
    return value;
  }
}
