import type { ThreadStatus } from "../../../../src/agent-server/contract/records.ts";

export const THREAD_STATUSES: readonly ThreadStatus[] = ["idle", "busy", "interrupted", "error"];

export interface ThreadsSearch {
  status?: ThreadStatus;
  /** Search text for the thread's state or ID. */
  q?: string;
  /** Metadata filter: comma-separated `key=value` pairs or a JSON object. */
  metadata?: string;
  /** Whether the list has the threads that experiments keep. */
  experiments?: true;
  /** Sort field. Default: `updated_at`. */
  sort?: "created_at";
  /** Sort direction. Default: newest first. */
  order?: "asc";
}

/** Whether filters or another order change the list. The target is no filter. */
export const isFiltered = (search: ThreadsSearch): boolean =>
  Object.entries(search).some(([name, value]) => name !== "target" && value !== undefined);

/**
 * Parses a metadata filter such as `customer=7, tier="gold"`. A value that is not valid JSON is used as a string.
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

/** Parses JSON. Returns text that is not valid JSON unchanged. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
