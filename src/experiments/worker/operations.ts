import type { Database } from "../../platform/database/database.ts";
import { comparedRowsOperations, distributionOperations } from "../comparison/app-comparison.ts";
import { Comparisons, comparativeOperations } from "../comparison/comparison.ts";
import { deltaOperations } from "../comparison/deltas.ts";
import { examplesWithRunsOperations } from "../comparison/examples-with-runs.ts";
import { datasetOperations, sharedDatasetOperations } from "../datasets/datasets.ts";
import { exampleOperations } from "../datasets/examples.ts";
import { feedbackOperations } from "../feedback/feedback.ts";
import { feedbackConfigOperations } from "../feedback/feedback-configs.ts";
import { runOperations } from "../sessions/runs.ts";
import { sessionOperations } from "../sessions/sessions.ts";
import { Ingestion } from "../traces/ingestion.ts";
import { Uploads } from "../upload/uploads.ts";

/** The operations of the experiments API, by noun. Arguments and results are plain data, because threads exchange them. */
export function createOperations(database: Database) {
  return {
    uploads: new Uploads(database),
    traces: new Ingestion(database),
    datasets: datasetOperations(database),
    shared: sharedDatasetOperations(database),
    examples: exampleOperations(database),
    sessions: sessionOperations(database),
    runs: runOperations(database),
    feedback: feedbackOperations(database),
    feedbackConfigs: feedbackConfigOperations(database),
    examplesWithRuns: examplesWithRunsOperations(database),
    deltas: deltaOperations(database),
    comparisons: new Comparisons(database),
    comparedRows: comparedRowsOperations(database),
    distributions: distributionOperations(database),
    comparative: comparativeOperations(database),
  };
}

export type Operations = ReturnType<typeof createOperations>;
