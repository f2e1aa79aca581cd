import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { microsecondsOfTime } from "../../contract/fields.ts";

export type Details = Readonly<Record<string, number>>;

const AMOUNTS = [
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_cost",
  "completion_cost",
  "total_cost",
] as const;
const DETAILS = [
  "prompt_token_details",
  "completion_token_details",
  "prompt_cost_details",
  "completion_cost_details",
] as const;

/** What a client reports about a run. Null means that the client sent no value. Costs are in dollars. */
export type RunUsage = Record<(typeof AMOUNTS)[number], number | null> &
  Record<(typeof DETAILS)[number], Details | null>;

const NO_USAGE = Object.fromEntries([...AMOUNTS, ...DETAILS].map((key) => [key, null])) as Readonly<RunUsage>;

/** Runs of other types repeat the tokens of the models that they call, so only costs are read from them. */
const TOKEN_TYPES: ReadonlySet<string> = new Set(["llm", "embedding"]);

/** Maximum number of tokens or dollars of a run. Sums of tokens over 25,000 runs are then exact integers. */
const MAX_AMOUNT = 1e11;
const MAX_DETAILS = 50;
const MAX_DETAIL_CHARS = 100;
const MAX_OUTPUTS = 1_000;
const MAX_GENERATIONS = 10_000;

const PROMPT = ["input_tokens", "prompt_tokens", "promptTokens"];
const COMPLETION = ["output_tokens", "completion_tokens", "completionTokens"];
const TOTAL = ["total_tokens", "totalTokens"];
const PROMPT_DETAILS = ["input_token_details", "prompt_tokens_details", "input_tokens_details"];
const COMPLETION_DETAILS = ["output_token_details", "completion_tokens_details", "output_tokens_details"];

const DETAIL_NAMES: ReadonlyMap<string, string> = new Map([
  ["cached_tokens", "cache_read"],
  ["reasoning_tokens", "reasoning"],
  ["audio_tokens", "audio"],
  ["image_tokens", "image"],
  ["text_tokens", "text"],
]);

type Read = (place: unknown) => RunUsage | undefined;

/** The usage from the first place that contains usage. `outputs` and `metadata` are JSON of any shape. */
export function ownUsage(run: { run_type: string; outputs: unknown; metadata: unknown }): RunUsage | undefined {
  const read: Read = TOKEN_TYPES.has(run.run_type) ? usageOf : costsOf;
  const outputs = objectOf(run.outputs);
  return (
    read(outputs.usage_metadata) ??
    read(objectOf(run.metadata).usage_metadata) ??
    usageOfMessages(outputs, read) ??
    usageOfGenerations(outputs.generations, read) ??
    read(objectOf(outputs.llm_output).token_usage) ??
    read(objectOf(outputs.llmOutput).tokenUsage) ??
    read(objectOf(outputs.llmOutput).estimatedTokenUsage) ??
    read(outputs.usage)
  );
}

function usageOfMessages(outputs: JsonObject, read: Read): RunUsage | undefined {
  let seen = 0;
  for (const key in outputs) {
    if (++seen > MAX_OUTPUTS) return undefined;
    const value = outputs[key];
    if (!isObject(value)) continue;
    const usage = read(value.usage_metadata) ?? (value.lc === 1 ? usageOfKwargs(value, read) : undefined);
    if (usage) return usage;
  }
  return undefined;
}

const usageOfKwargs = (message: JsonObject, read: Read) => read(objectOf(message.kwargs).usage_metadata);

/** `generations` contains a list for each prompt. Some clients send only the list of a single prompt. */
function usageOfGenerations(generations: unknown, read: Read): RunUsage | undefined {
  if (!Array.isArray(generations)) return undefined;
  const sum = { ...NO_USAGE };
  let found = false;
  let seen = 0;
  for (const list of generations) {
    for (const generation of Array.isArray(list) && list.length > 0 ? list : [list]) {
      if (++seen > MAX_GENERATIONS) return found ? sum : undefined;
      const message = objectOf(objectOf(generation).message);
      const usage = usageOfKwargs(message, read) ?? read(message.usage_metadata);
      if (usage) addUsage(sum, usage);
      found ||= usage !== undefined;
    }
  }
  return found ? sum : undefined;
}

function usageOf(place: unknown): RunUsage | undefined {
  if (!isObject(place)) return undefined;
  const [prompt_tokens, prompt_token_details] = promptOf(place);
  const completion_tokens = first(place, COMPLETION);
  const sent_total = first(place, TOTAL);
  // If the provider sends no total, clients send 0 in addition to the tokens.
  const total_tokens = sent_total || (plus(prompt_tokens, completion_tokens) ?? sent_total);
  const costs = costsOf(place);
  if (total_tokens === null && !costs) return undefined;
  const completion_token_details = detailsOf(firstObject(place, COMPLETION_DETAILS));
  const tokens = { prompt_tokens, completion_tokens, total_tokens, prompt_token_details, completion_token_details };
  return { ...(costs ?? NO_USAGE), ...tokens };
}

/** Anthropic does not include cached tokens in `input_tokens`; all other providers do. */
function promptOf(place: JsonObject): [number | null, Details | null] {
  const prompt_tokens = first(place, PROMPT);
  const cache_read = amount(place.cache_read_input_tokens);
  const cache_creation = amount(place.cache_creation_input_tokens);
  const cached = plus(cache_read, cache_creation);
  if (cached === null) return [prompt_tokens, detailsOf(firstObject(place, PROMPT_DETAILS))];
  const created = detailsOf(place.cache_creation) ?? { cache_creation: cache_creation ?? 0 };
  return [plus(prompt_tokens, cached), { cache_read: cache_read ?? 0, ...created }];
}

function costsOf(place: unknown): RunUsage | undefined {
  if (!isObject(place)) return undefined;
  const prompt_cost = amount(place.input_cost, false);
  const completion_cost = amount(place.output_cost, false);
  const total_cost = amount(place.total_cost, false);
  if ((prompt_cost ?? completion_cost ?? total_cost) === null) return undefined;
  const prompt_cost_details = detailsOf(place.input_cost_details, false);
  const completion_cost_details = detailsOf(place.output_cost_details, false);
  return { ...NO_USAGE, prompt_cost, completion_cost, total_cost, prompt_cost_details, completion_cost_details };
}

function amount(value: unknown, isCount = true): number | null {
  if (typeof value !== "number" || !(value >= 0 && value <= MAX_AMOUNT)) return null;
  return isCount ? Math.round(value) : value;
}

const plus = (one: number | null, other: number | null): number | null =>
  one === null ? other : Math.min(one + (other ?? 0), MAX_AMOUNT);

const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

function first(place: JsonObject, keys: readonly string[]): number | null {
  for (const key of keys) {
    const count = amount(place[key]);
    if (count !== null) return count;
  }
  return null;
}

const firstObject = (place: JsonObject, keys: readonly string[]): unknown =>
  keys.map((key) => place[key]).find(isObject);

function detailsOf(value: unknown, isCount = true): Details | null {
  if (!isObject(value)) return null;
  const details: [string, number][] = [];
  let seen = 0;
  for (const key in value) {
    if (++seen > MAX_DETAILS) break;
    const detail = key.length <= MAX_DETAIL_CHARS ? amount(value[key], isCount) : null;
    if (detail !== null) details.push([DETAIL_NAMES.get(key) ?? key, detail]);
  }
  return details.length > 0 ? Object.fromEntries(details) : null;
}

function addUsage(sum: RunUsage, usage: RunUsage): void {
  for (const key of AMOUNTS) sum[key] = plus(sum[key], usage[key]);
  for (const key of DETAILS) sum[key] = plusDetails(sum[key], usage[key]);
}

function plusDetails(one: Details | null, other: Details | null): Details | null {
  if (!one || !other) return one ?? other;
  const sum = new Map(Object.entries(one));
  for (const [name, detail] of Object.entries(other)) {
    if (sum.has(name) || sum.size < MAX_DETAILS) sum.set(name, plus(detail, sum.get(name) ?? null) as number);
  }
  return Object.fromEntries(sum);
}

/** Number of token events that are kept at each end of the list. Thousands of them would add no useful information. */
const KEPT_TOKENS = 10;

const isNewToken = (event: unknown): event is JsonObject => isObject(event) && event.name === "new_token";

/** Returns the time of the earliest token in microseconds. Ignores events without a time, which the Python client also sends. */
export function firstTokenOf(events: unknown): number | null {
  let earliest: number | null = null;
  let text = "";
  for (const event of Array.isArray(events) ? events : []) {
    const time = isNewToken(event) ? event.time : undefined;
    // Times with the same format and zone are compared as text: parsing a time takes some microseconds, and there may be thousands.
    const isText = typeof time === "string";
    if (isText && time.length === text.length && time >= text && time.endsWith(text.slice(-6))) continue;
    const us = isText || typeof time === "number" ? microsecondsOfTime(time) : undefined;
    if (us === undefined || (earliest !== null && us >= earliest)) continue;
    earliest = us;
    text = isText ? time : "";
  }
  return earliest;
}

/** Returns the events to store: token events without their text, and only the first and last {@link KEPT_TOKENS} of them. */
export function trimEvents<E>(events: readonly E[]): E[] {
  const last = events.reduce((count, event) => count + Number(isNewToken(event)), 0) - KEPT_TOKENS;
  let index = 0;
  return events.flatMap((event) => {
    if (!isNewToken(event)) return [event];
    const isKept = index < KEPT_TOKENS || index >= last;
    index++;
    if (!isKept) return [];
    const { kwargs: _, ...rest } = event;
    return [rest as E];
  });
}
