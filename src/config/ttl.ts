import { ConfigError } from "../platform/errors.ts";
import { isObject } from "../platform/lib/json/json.ts";

const MS_PER_MINUTE = 60_000;
/** Maximum TTL (100 years) and maximum sweep interval (24.3 days; the limit of Node.js timers is 24.8 days). */
const MAX_TTL_MINUTES = 52_560_000;
const MAX_INTERVAL_MINUTES = 35_000;
const DEFAULT_SWEEP_MINUTES = 5;
const DEFAULT_SWEEP_LIMIT = 1_000;
const MAX_SWEEP_LIMIT = 100_000;

/**
 * Reads the fields that the `ttl` sections of `store` and `checkpointer` have in common. Fractions of minutes are allowed.
 *
 * @param path path of the section in langgraph.json
 * @throws ConfigError
 */
export function readTtl(section: unknown, path: string, config_file: string) {
  const wrong = (name: string, remedy: string) => new ConfigError(`${config_file}: ${path}${name} ${remedy}.`);
  if (section !== undefined && section !== null && !isObject(section)) throw wrong("", "must be an object");
  const ttl = section ?? {};
  const minutes = (name: string, max: number): number | undefined => {
    const value = ttl[name] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value === "number" && value > 0 && value <= max) return Math.ceil(value * MS_PER_MINUTE);
    throw wrong(`.${name}`, `must be a number of minutes, greater than 0 and at most ${max}`);
  };
  return {
    ttl,
    wrong,
    default_ms: minutes("default_ttl", MAX_TTL_MINUTES),
    sweep_interval_ms: minutes("sweep_interval_minutes", MAX_INTERVAL_MINUTES) ?? DEFAULT_SWEEP_MINUTES * MS_PER_MINUTE,
  };
}

/**
 * @param field `checkpointer` of langgraph.json
 * @throws ConfigError
 */
export function readThreadTtl(field: unknown, config_file: string) {
  if (field !== undefined && field !== null && !isObject(field))
    throw new ConfigError(`${config_file}: checkpointer must be an object.`);
  const { ttl, wrong, default_ms, sweep_interval_ms } = readTtl(field?.ttl, "checkpointer.ttl", config_file);
  const { strategy = "delete", sweep_limit = DEFAULT_SWEEP_LIMIT } = ttl;
  if (strategy !== "delete" && strategy !== "keep_latest")
    throw wrong(".strategy", 'must be "delete" or "keep_latest"');
  if (!(Number.isInteger(sweep_limit) && (sweep_limit as number) >= 1 && (sweep_limit as number) <= MAX_SWEEP_LIMIT))
    throw wrong(".sweep_limit", `must be the number of threads per sweep, an integer from 1 to ${MAX_SWEEP_LIMIT}`);
  return {
    default: default_ms === undefined ? {} : { ttl_strategy: strategy as "delete" | "keep_latest", ttl_ms: default_ms },
    sweep: { interval_ms: sweep_interval_ms, limit: sweep_limit as number },
  };
}
