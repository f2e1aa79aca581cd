import { DASH } from "../../ui/format.ts";

/** More than a row can show. */
const MAX_CHARS = 300;

/** The beginning of inputs or outputs in one line: the text itself where there is but one, as in `{"question": "..."}`. */
export function previewOf(value: unknown): string {
  if (value === null || value === undefined) return DASH;
  const only = soleText(value);
  return (only ?? JSON.stringify(value)).slice(0, MAX_CHARS).replace(/\s+/g, " ");
}

function soleText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return undefined;
  const values = Object.values(value);
  return values.length === 1 && typeof values[0] === "string" ? values[0] : undefined;
}
