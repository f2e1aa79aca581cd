import { DASH } from "../../ui/format.ts";

/** Maximum length of a preview, longer than a table row can show. */
const MAX_CHARS = 300;

/** Returns a one-line preview of inputs or outputs. */
export function previewOf(value: unknown): string {
  if (value === null || value === undefined) return DASH;
  const only = soleText(value);
  return (only ?? JSON.stringify(value)).slice(0, MAX_CHARS).replace(/\s+/g, " ");
}

/** Returns the text of a string, or of an object whose only value is a string: `Paris` for `{"answer": "Paris"}`. */
export function soleText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return undefined;
  const values = Object.values(value);
  return values.length === 1 && typeof values[0] === "string" ? values[0] : undefined;
}
