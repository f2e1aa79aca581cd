import { ConfigError } from "../../platform/errors.ts";

/** Environment variables by name. */
export type Env = Readonly<Record<string, string | undefined>>;

/** `public` settings are also listed in the README. `internal` settings are undocumented: the control plane sets them in its instances. */
export type Visibility = "public" | "advanced" | "internal";

/** Parses the text of a setting. Throws a ConfigError that contains `name` if the text is invalid. */
export type Read<T> = (text: string, name: string) => T;

interface Description {
  /** Default: `advanced`. */
  visibility?: Visibility;
  /** Markdown with links relative to docs/. `--help` and the README contain the first sentence. */
  meaning: string;
  /** The default value as text, in the format of the environment variable. */
  default?: string;
  /** The default as shown in the documentation, if it differs from `default`. */
  shown_default?: string;
  /** Keeps the value out of the log. */
  secret?: true;
}

export interface Setting<T> extends Description {
  visibility: Visibility;
  /** The flag in commander's syntax, such as `--port <number>`. It takes precedence over environment variables. */
  flag: string | undefined;
  /** Environment variables. The first one that is set is used; empty means the default. */
  env: readonly string[] | undefined;
  read(text: string | undefined, name: string): T;
}

type Names = string | readonly string[];

/** @param names the flag, then the environment variables, in the order of their precedence */
export function setting<T>(names: Names, read: Read<T>, description: Description & { default: string }): Setting<T>;
export function setting<T>(names: Names, read: Read<T>, description: Description): Setting<T | undefined>;
export function setting<T>(names: Names, read: Read<T>, description: Description): Setting<T | undefined> {
  const isFlag = (name: string) => name.startsWith("--");
  const env = [names].flat().filter((name) => !isFlag(name));
  return {
    visibility: "advanced",
    ...description,
    flag: [names].flat().find(isFlag),
    env: env.length > 0 ? env : undefined,
    read: (text = description.default, name) => (text === undefined ? undefined : read(text, name)),
  };
}

/** Returns the first sentence of the meaning as plain text, without link targets and the final period. */
export const summaryOf = ({ meaning }: Pick<Setting<unknown>, "meaning">): string =>
  (/^.*?(?=\.(?: |$))/.exec(meaning)?.[0] ?? meaning).replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");

/** 100 years. */
export const MAX_RETENTION_MS = 36_500 * 86_400_000;

export const text: Read<string> = (value) => value;

export const enabled: Read<boolean> = (value, name) => {
  if (value === "1" || value === "0") return value === "1";
  throw new ConfigError(`${name} must be 1 or 0, but is "${value}".`);
};

export const list: Read<readonly string[]> = (value) =>
  value
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);

export const integer =
  (min: number, max: number): Read<number> =>
  (value, name) => {
    const number = Number(value);
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    throw new ConfigError(`${name} must be a whole number from ${min} to ${max}, but is "${value}".`);
  };

export const oneOf =
  <const T extends string>(allowed: readonly T[]): Read<T> =>
  (value, name) => {
    const found = allowed.find((choice) => choice === value.toLowerCase());
    if (found !== undefined) return found;
    throw new ConfigError(`${name} must be ${allowed.join(" or ")}, but is "${value}".`);
  };

const MS_BY_UNIT: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Node.js timers are limited to 31 bits of milliseconds (24.8 days). Retention periods are compared with dates and may
 * be longer.
 */
const MAX_TIMER_MS = 24 * 86_400_000;

/** Parses a duration, such as `500ms`, `30s`, `1.5m`, `24h` or `7d`, to milliseconds. */
export const duration =
  (min_ms = 1, max_ms = MAX_TIMER_MS): Read<number> =>
  (value, name) => {
    const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value) ?? [];
    const ms = Math.round(Number(amount) * (MS_BY_UNIT[unit] ?? Number.NaN));
    if (ms >= min_ms && ms <= max_ms) return ms;
    throw new ConfigError(
      `${name} must be a duration from ${durationText(min_ms)} to ${durationText(max_ms)}, but is "${value}". Units: ms, s, m, h, d.`,
    );
  };

/** Formats a duration in the largest unit in which it is a whole number. */
export function durationText(ms: number): string {
  const [unit, size] = Object.entries(MS_BY_UNIT).findLast(([, unit_ms]) => ms % unit_ms === 0) as [string, number];
  return `${ms / size}${unit}`;
}

/** Parses a number of seconds to milliseconds, for settings that the LangGraph server defines in seconds. */
export const seconds: Read<number> = (value, name) => {
  const number = Number(value);
  if (Number.isFinite(number) && number >= 0 && number < 2_000_000) return Math.round(number * 1000);
  throw new ConfigError(`${name} must be a number of seconds, at least 0 and less than 2000000, but is "${value}".`);
};

const BYTES_BY_UNIT: Record<string, number> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
};

/** Parses a size, such as `50MB` (10^6), `200MiB` (2^20) or a plain number, to bytes. */
export const size =
  (min: number, max: number): Read<number> =>
  (value, name) => {
    const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)([KMG]I?B|B)?$/i.exec(value) ?? [];
    const bytes = Math.round(Number(amount) * (BYTES_BY_UNIT[unit.toUpperCase() || "B"] ?? Number.NaN));
    if (bytes >= min && bytes <= max) return bytes;
    throw new ConfigError(
      `${name} must be a size from ${min} to ${max} bytes, but is "${value}". Units: B, KB, MB, GB, KiB, MiB, GiB.`,
    );
  };
