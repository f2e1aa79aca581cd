import type { Database } from "../../platform/database/database.ts";
import { ComparedRows, Distributions } from "../comparison/app-comparison.ts";
import { ComparativeExperiments, Comparisons } from "../comparison/comparison.ts";
import { FeedbackDeltas } from "../comparison/deltas.ts";
import { ExamplesWithRuns } from "../comparison/examples-with-runs.ts";
import { Datasets, SharedDatasets } from "../datasets/datasets.ts";
import { Examples } from "../datasets/examples.ts";
import { FeedbackRules } from "../feedback/feedback.ts";
import { FeedbackConfigs } from "../feedback/feedback-configs.ts";
import { ExperimentRuns } from "../sessions/runs.ts";
import { Sessions } from "../sessions/sessions.ts";
import { Uploads } from "../upload/uploads.ts";

/** Everything that can be asked of experiments, by noun. Arguments and answers are plain data: they cross threads. */
export function createOperations(database: Database) {
  return {
    uploads: new Uploads(database),
    datasets: new Datasets(database),
    shared: new SharedDatasets(database),
    examples: new Examples(database),
    sessions: new Sessions(database),
    runs: new ExperimentRuns(database),
    feedback: new FeedbackRules(database),
    feedbackConfigs: new FeedbackConfigs(database),
    examplesWithRuns: new ExamplesWithRuns(database),
    deltas: new FeedbackDeltas(database),
    comparisons: new Comparisons(database),
    comparedRows: new ComparedRows(database),
    distributions: new Distributions(database),
    comparative: new ComparativeExperiments(database),
  };
}

export type Operations = ReturnType<typeof createOperations>;
