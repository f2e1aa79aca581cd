import { ComparativeExperiments } from "../comparison/comparative.ts";
import { ComparedRows } from "../comparison/compared-rows.ts";
import { Comparisons } from "../comparison/comparison.ts";
import { FeedbackDeltas } from "../comparison/deltas.ts";
import { Distributions } from "../comparison/distributions.ts";
import { ExamplesWithRuns } from "../comparison/examples-with-runs.ts";
import type { ExperimentsContext } from "../context.ts";
import { Datasets } from "../datasets.ts";
import { Examples } from "../examples.ts";
import { FeedbackRules } from "../feedback.ts";
import { FeedbackConfigs } from "../feedback-configs.ts";
import { ExperimentRuns } from "../runs.ts";
import { Sessions } from "../sessions.ts";
import { SharedDatasets } from "../shared.ts";
import { Uploads } from "../upload/uploads.ts";

/** Everything that can be asked of experiments, by noun. Arguments and answers are plain data: they cross threads. */
export function createOperations(context: ExperimentsContext) {
  return {
    uploads: new Uploads(context),
    datasets: new Datasets(context),
    shared: new SharedDatasets(context),
    examples: new Examples(context),
    sessions: new Sessions(context),
    runs: new ExperimentRuns(context),
    feedback: new FeedbackRules(context),
    feedbackConfigs: new FeedbackConfigs(context),
    examplesWithRuns: new ExamplesWithRuns(context),
    deltas: new FeedbackDeltas(context),
    comparisons: new Comparisons(context),
    comparedRows: new ComparedRows(context),
    distributions: new Distributions(context),
    comparative: new ComparativeExperiments(context),
  };
}

export type Operations = ReturnType<typeof createOperations>;
