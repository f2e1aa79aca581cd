import { queueItemRoutes } from "./annotation-queues/items.ts";
import { annotationQueueRoutes } from "./annotation-queues/queues.ts";
import { comparativeRoutes, comparisonRoutes } from "./comparison.ts";
import { datasetFileRoutes } from "./datasets/dataset-files.ts";
import { datasetVersionRoutes } from "./datasets/dataset-versions.ts";
import { datasetRoutes } from "./datasets/datasets.ts";
import { exampleRoutes } from "./datasets/examples.ts";
import { platformExampleRoutes } from "./datasets/platform-examples.ts";
import { sharedDatasetRoutes } from "./datasets/shared-datasets.ts";
import { feedbackRoutes } from "./feedback/feedback.ts";
import { feedbackConfigRoutes } from "./feedback/feedback-configs.ts";
import { feedbackTokenRoutes } from "./feedback/feedback-tokens.ts";
import { promptRoutes, settingsRoutes } from "./prompts.ts";
import { runRoutes } from "./runs.ts";
import { sessionRoutes } from "./sessions.ts";
import { systemRoutes } from "./system.ts";
import { priceRoutes } from "./traces/prices.ts";
import { runShareRoutes, sharedRunRoutes } from "./traces/run-shares.ts";
import { threadRoutes } from "./traces/threads.ts";
import { traceRoutes } from "./traces/traces.ts";
import { uploadRoutes } from "./upload.ts";

/** The routes of the experiments API, below `/api/v1` and at the root, by their tag in the OpenAPI document. */
export const experimentRoutes = {
  Experiments: { ...uploadRoutes, ...sessionRoutes },
  Comparison: { ...comparativeRoutes, ...comparisonRoutes },
  Datasets: { ...datasetRoutes, ...datasetVersionRoutes, ...datasetFileRoutes, ...sharedDatasetRoutes },
  Examples: { ...exampleRoutes, ...platformExampleRoutes },
  Traces: { ...traceRoutes, ...priceRoutes },
  Runs: { ...runRoutes, ...threadRoutes, ...runShareRoutes, ...sharedRunRoutes },
  Feedback: { ...feedbackTokenRoutes, ...feedbackRoutes, ...feedbackConfigRoutes },
  "Annotation queues": { ...annotationQueueRoutes, ...queueItemRoutes },
  Prompts: { ...promptRoutes, ...settingsRoutes },
  System: systemRoutes,
};

export const experimentsDocument = {
  openapi: "3.1.0",
  info: {
    title: "Threadmill experiments",
    version: "0.1.0",
    description:
      "Datasets, experiments, traces, feedback, annotation queues and prompts. Errors have the body `{detail}`. `detail` is a " +
      "message or, in a 422 response, a list of invalid fields. In version 2, errors are problem details (RFC 7807). Unknown fields and " +
      "query parameters are ignored.",
  },
  tags: [
    { name: "Experiments", description: "Experiments and their statistics. The API calls an experiment a session." },
    { name: "Datasets", description: "Collections of examples." },
    { name: "Examples", description: "Inputs and expected outputs." },
    { name: "Traces", description: "Model prices, and the ingestion of runs." },
    { name: "Runs", description: "Traced runs, and the runs of experiments." },
    { name: "Feedback", description: "Scores and comments on runs and experiments." },
    { name: "Comparison", description: "Experiment comparison." },
    { name: "Annotation queues", description: "Queues of runs for human review. An item is a run in a queue." },
    { name: "Prompts", description: "Prompts with commits and tags. The API calls a prompt a repo." },
    { name: "Version 2", description: "Version 2 of the API for datasets, runs, threads and comparisons." },
    { name: "System", description: "Information about the server." },
  ],
};
