import type { Operations } from "./operations.ts";

/**
 * Reads continue while an upload is stored (1 s for 10,000 rows) and while bootstrap intervals are computed (0.1 s each).
 * Traces have a worker of their own, because clients wait at most 10 s for the response, as long as a large upload takes.
 */
export type WorkerName = "read" | "write" | "compute" | "ingest";

/** An operation without a worker does not compile. */
type Assignment = { [Group in keyof Operations]: { [Name in keyof Operations[Group]]: WorkerName } };

/** This file imports types only, so that the serving thread chooses the worker without loading the operations. */
export const OPERATION_WORKERS = {
  uploads: { begin: "write", push: "write", finish: "write", abandon: "write" },
  traces: { ingest: "ingest", ingestSpans: "ingest" },
  datasets: {
    list: "read",
    read: "read",
    create: "write",
    update: "write",
    delete: "write",
    versions: "read",
    readShare: "read",
    share: "write",
    unshare: "write",
  },
  shared: { read: "read", listExamples: "read", listSessions: "read" },
  examples: { list: "read", count: "read", read: "read", create: "write", update: "write", delete: "write" },
  sessions: { list: "read", read: "read", create: "write", update: "write", delete: "write" },
  runs: {
    query: "read",
    read: "read",
    stats: "read",
    queryV2: "read",
    readV2: "read",
    findAttachment: "read",
    readAttachment: "read",
  },
  feedback: { list: "read", read: "read", create: "write", update: "write", delete: "write" },
  feedbackConfigs: { list: "read", create: "write", update: "write", delete: "write" },
  examplesWithRuns: { page: "read", pageV2: "read" },
  deltas: { read: "read", stream: "read" },
  comparisons: { compare: "compute" },
  comparedRows: { read: "read" },
  distributions: { read: "read" },
  comparative: { create: "write", list: "read", delete: "write" },
} as const satisfies Assignment;
