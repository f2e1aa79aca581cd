import type { ThreadStatus } from "../../../../src/agent-server/contract/records.ts";

export const THREAD_STATUSES: readonly ThreadStatus[] = ["idle", "busy", "interrupted", "error"];

/** Which threads are listed, as the URL has it. */
export interface ThreadsSearch {
  status?: ThreadStatus;
  /** Words of the state, or an id. */
  q?: string;
  /** `key=value`, several with commas between, or a JSON object. */
  metadata?: string;
  /** Last updated when it is left out. */
  sort?: "created_at";
  /** Newest first when it is left out. */
  order?: "asc";
}

/**
 * Metadata as people write it: `customer=7, tier="gold"`. A value that is JSON is read as it; else it is text.
 *
 * @returns undefined when nothing is asked for, null when it cannot be read
 */
export function readMetadata(written: string | undefined): Record<string, unknown> | null | undefined {
  if (!written?.trim()) return undefined;
  if (written.trim().startsWith("{")) {
    const value = jsonOf(written);
    return typeof value === "object" ? (value as Record<string, unknown>) : null;
  }
  const pairs = written.split(",").map((pair) => pair.split(/=(.*)/s).map((part) => part.trim()));
  if (pairs.some(([key, value]) => !key || value === undefined)) return null;
  return Object.fromEntries(pairs.map(([key = "", value = ""]) => [key, jsonOf(value)]));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
