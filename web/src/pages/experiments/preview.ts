import { DASH } from "../../ui/format.ts";

/** Longer than a table row can show. */
const MAX_CHARS = 300;

/** A one-line preview of inputs or outputs. */
export function previewOf(value: unknown): string {
  if (value === null || value === undefined) return DASH;
  const only = soleText(value);
  return (only ?? JSON.stringify(value)).slice(0, MAX_CHARS).replace(/\s+/g, " ");
}

/** The text of a payload with a single string: `Paris` for `{"answer": "Paris"}`. */
export function soleText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return undefined;
  const values = Object.values(value);
  return values.length === 1 && typeof values[0] === "string" ? values[0] : undefined;
}
