import type { Database } from "../../platform/database/database.ts";
import { queueItemOperations } from "../annotation-queues/items.ts";
import { annotationQueueOperations } from "../annotation-queues/queues.ts";
import { comparedRowsOperations, distributionOperations } from "../comparison/app-comparison.ts";
import { Comparisons, comparativeOperations } from "../comparison/comparison.ts";
import { deltaOperations } from "../comparison/deltas.ts";
import { examplesWithRunsOperations } from "../comparison/examples-with-runs.ts";
import { datasetOperations, sharedDatasetOperations } from "../datasets/datasets.ts";
import { exampleOperations } from "../datasets/examples.ts";
import { datasetFileOperations } from "../datasets/files.ts";
import { datasetVersionOperations } from "../datasets/versions.ts";
import { feedbackOperations, feedbackTokenOperations } from "../feedback/feedback.ts";
import { feedbackConfigOperations } from "../feedback/feedback-configs.ts";
import { promptOperations } from "../prompts/prompts.ts";
import { runShareOperations, sharedRunOperations } from "../sessions/run-shares.ts";
import { runOperations } from "../sessions/runs.ts";
import { sessionOperations } from "../sessions/sessions.ts";
import { threadOperations } from "../sessions/threads.ts";
import { Ingestion } from "../traces/ingestion.ts";
import type { SpanExport } from "../traces/otlp/span-export.ts";
import { tracePageOperations } from "../traces/trace-pages.ts";
import { retentionOperations } from "../traces/trace-retention.ts";
import { PriceMaps, priceOperations } from "../traces/usage/price-maps.ts";
import { repriceOperations } from "../traces/usage/reprice.ts";
import { Uploads } from "../upload/uploads.ts";

/** Creates the operations of the experiments API, grouped by resource. Arguments and results are plain data that threads exchange. */
export function createOperations(database: Database, span_export?: SpanExport) {
  const price_maps = new PriceMaps();
  return {
    uploads: new Uploads(database),
    traces: new Ingestion(database, price_maps, span_export),
    prices: priceOperations(database, price_maps),
    reprice: repriceOperations(database, price_maps),
    retention: retentionOperations(database),
    datasets: datasetOperations(database),
    datasetVersions: datasetVersionOperations(database),
    datasetFiles: datasetFileOperations(database),
    shared: sharedDatasetOperations(database),
    examples: exampleOperations(database),
    sessions: sessionOperations(database),
    runs: runOperations(database),
    threads: threadOperations(database),
    runShares: runShareOperations(database),
    sharedRuns: sharedRunOperations(database),
    feedback: feedbackOperations(database),
    feedbackTokens: feedbackTokenOperations(database),
    feedbackConfigs: feedbackConfigOperations(database),
    examplesWithRuns: examplesWithRunsOperations(database),
    deltas: deltaOperations(database),
    comparisons: new Comparisons(database),
    comparedRows: comparedRowsOperations(database),
    tracePages: tracePageOperations(database),
    distributions: distributionOperations(database),
    comparative: comparativeOperations(database),
    annotationQueues: annotationQueueOperations(database),
    queueItems: queueItemOperations(database),
    prompts: promptOperations(database),
  };
}

export type Operations = ReturnType<typeof createOperations>;
