import { messagesOf, partsOf } from "./messages.ts";

/** Where graphs without messages usually keep what they were asked. A search reads at most ten places of a state. */
export const ASKED_IN = ["question", "input", "query", "prompt", "topic", "task"] as const;

/** What was said first, or asked, on one line. */
export function titleOf(values: unknown): string | undefined {
  const [first] = messagesOf(values) ?? [];
  const fields = (values ?? {}) as Record<string, unknown>;
  const asked = ASKED_IN.map((key) => fields[key]).find((value) => typeof value === "string" && value !== "");
  const text = first ? partsOf(first).text : typeof asked === "string" ? asked : "";
  return text.replace(/\s+/g, " ").slice(0, 120) || undefined;
}
