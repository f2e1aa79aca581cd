import type { Random } from "../support/random.ts";

/** Values of any kind as a query; nothing for no fields. */
export function queryOf(fields: Record<string, unknown>): string {
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${encodeURIComponent(textOf(value))}`);
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

const textOf = (value: unknown): string =>
  typeof value === "string" ? value.toWellFormed() : (JSON.stringify(value) ?? "");

/** Fields as a body; one in twenty is no JSON, no object, or one that reaches for the prototype of all objects. */
export function bodyOf(fields: Record<string, unknown>, random: Random): string {
  if (random.next() < 0.03) return random.pick(['{"a":', "nul", "[".repeat(5000), "", "null"]);
  if (random.next() < 0.02) return '{"__proto__":{"polluted":true}}';
  return JSON.stringify(fields);
}
