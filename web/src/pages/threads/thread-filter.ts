import type { ThreadStatus } from "../../../../src/agent-server/contract/records.ts";

export const THREAD_STATUSES: readonly ThreadStatus[] = ["idle", "busy", "interrupted", "error"];

export interface ThreadsSearch {
  status?: ThreadStatus;
  /** Searches the state, or an ID. */
  q?: string;
  /** `key=value` pairs, separated by commas, or a JSON object. */
  metadata?: string;
  /** Default: `updated_at`. */
  sort?: "created_at";
  /** Default: newest first. */
  order?: "asc";
}

/**
 * Parses a metadata filter such as `customer=7, tier="gold"`. A value that is not valid JSON is a string.
 *
 * @returns undefined for an empty filter, null for an invalid filter
 */
export function parseMetadata(filter: string | undefined): Record<string, unknown> | null | undefined {
  if (!filter?.trim()) return undefined;
  if (filter.trim().startsWith("{")) {
    const value = jsonOf(filter);
    return typeof value === "object" ? (value as Record<string, unknown>) : null;
  }
  const pairs = filter.split(",").map((pair) => pair.split(/=(.*)/s).map((part) => part.trim()));
  if (pairs.some(([key, value]) => !key || value === undefined)) return null;
  return Object.fromEntries(pairs.map(([key = "", value = ""]) => [key, jsonOf(value)]));
}

/** Parses JSON. Returns a text that is not JSON unchanged. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
