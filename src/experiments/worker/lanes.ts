import type { Operations } from "./operations.ts";

/**
 * Where an operation is carried out. Each lane is a thread of its own, so that reading goes on while an upload is being
 * stored (one transaction, about a second for 10,000 rows), and while intervals are drawn (0.1 s each).
 *
 * This file imports types alone: the serving thread chooses the lane, and has no use for the rules.
 */
export type Lane = "read" | "write" | "compute";

export type Noun = keyof Operations;

const READS = new Set(["list", "read", "count", "versions", "readShare", "query", "stats", "queryV2", "readV2"]);

export function laneOf(noun: Noun, verb: string): Lane {
  if (noun === "comparisons") return "compute";
  const isRead = noun === "shared" || noun === "examplesWithRuns" || noun === "deltas" || READS.has(verb);
  return isRead ? "read" : "write";
}
