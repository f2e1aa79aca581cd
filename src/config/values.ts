import { ConfigError } from "../platform/errors.ts";

/** Variables of the environment, by name. */
export type Env = Readonly<Record<string, string | undefined>>;

export function integer(name: string, text: string | undefined, fallback: number, min: number, max: number): number {
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new ConfigError(`${name} must be a whole number from ${min} to ${max}, but is "${text}".`);
}

export function number(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (Number.isFinite(value) && value >= 0 && value < 2_000_000) return value;
  throw new ConfigError(`${name} must be a number of seconds, but is "${text}".`);
}

export function oneOf<const T extends string>(
  name: string,
  value: string | undefined,
  allowed: readonly T[],
  fallback: T,
): T {
  if (value === undefined || value === "") return fallback;
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new ConfigError(`${name} must be one of ${allowed.join(", ")}, but is "${value}".`);
}

/** Comma-separated. */
export const list = (text: string | undefined): string[] =>
  (text ?? "")
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);
