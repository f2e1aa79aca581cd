import { experiments } from "./experiments-001.ts";
import { exampleIndexes } from "./experiments-002.ts";
import { traces } from "./experiments-003.ts";
import { traceReading } from "./experiments-004.ts";
import { datasetVersions } from "./experiments-005.ts";
import { promptsAndQueues } from "./experiments-006.ts";
import { pendingRows } from "./experiments-009.ts";

/** The migrations of the experiments, in their order. A published migration never changes. */
export const EXPERIMENT_MIGRATIONS = [
  experiments,
  exampleIndexes,
  traces,
  traceReading,
  datasetVersions,
  promptsAndQueues,
  pendingRows,
] as const;
