import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import {
  type DirtyFilter,
  dirtyExperiments,
  findExperimentByNo,
  lockExperiment,
  setStats,
} from "../storage/experiments.ts";
import { type FeedbackStatsInput, feedbackStatsInputs } from "../storage/feedback.ts";
import { runOutcomes } from "../storage/runs.ts";
import { deleteScoreVectors, deleteVector, putVector } from "../storage/score-vectors.ts";
import { sumOutcomes } from "../storage/traces/outcome-sums.ts";
import { rootOutcomes } from "../storage/traces/traces.ts";
import {
  computeRunStats,
  type ExperimentStats,
  feedbackStats,
  keyStats,
  meanVector,
  runScores,
  secondsOf,
} from "./stats.ts";

/** Stores the statistics and vectors of an experiment. The caller holds the lock of the experiment. */
export async function refreshStats(tx: Tx, experiment_no: number): Promise<void> {
  const rows = await runOutcomes(tx, experiment_no);
  // Traced rows repeat the roots of traces. Only the roots are counted, because they also have tokens and costs.
  const uploaded = rows.filter(({ is_traced }) => is_traced === 0);
  const roots = await sumOutcomes(tx, rootOutcomes(tx, experiment_no));
  const feedback = await feedbackStatsInputs(tx, experiment_no);
  // A pending run has no latency. The vector of errors shows which examples have runs, pending ones included.
  const timed = rows.filter(({ end_us }) => end_us !== null);
  const latencies = timed.map((run) => ({ ...run, value: secondsOf(run) }));
  const errors = rows.map((run) => ({ ...run, value: run.error === null ? 0 : 1 }));
  await putVector(tx, experiment_no, { kind: "latency", key: "" }, meanVector(latencies));
  await putVector(tx, experiment_no, { kind: "error", key: "" }, meanVector(errors));
  await deleteScoreVectors(tx, experiment_no);
  for (const [key, rows] of Map.groupBy(feedback, ({ key }) => key)) {
    const scores = runScores(rows);
    if (scores.length > 0) await putVector(tx, experiment_no, { kind: "score", key }, meanVector(scores));
  }
  const { ofRuns, ofSession } = byTarget(feedback);
  const stats: ExperimentStats = {
    ...computeRunStats(uploaded, roots),
    feedback_stats: feedbackStats(ofRuns),
    session_feedback_stats: feedbackStats(ofSession),
  };
  await setStats(tx, experiment_no, JSON.stringify(stats));
}

/**
 * Computes outdated statistics. Operations that show statistics or compare experiments call it first: `evaluate()` sends each run and each
 * score in a separate request, and only the next read needs the result.
 *
 * @param filter the sessions that are shown
 */
export async function refreshDirty(
  database: Database,
  { tenant_id }: Pick<Caller, "tenant_id">,
  filter: DirtyFilter,
): Promise<void> {
  for (const experiment_no of await dirtyExperiments(database.read, tenant_id, filter))
    await database.write(async (tx) => {
      const locked = await lockExperiment(tx, experiment_no);
      if (locked?.stats_dirty === 1) await refreshStats(tx, experiment_no);
    });
}

/** Updates the statistics and the vector of one feedback key. The caller holds the lock. */
export async function refreshKeyStats(tx: Tx, experiment_no: number, key: string): Promise<void> {
  const experiment = await findExperimentByNo(tx, experiment_no);
  // The next read computes all statistics. Until then, they must stay marked as outdated.
  if (experiment?.stats_dirty === 1) return;
  const stats = JSON.parse(experiment?.stats ?? "{}") as ExperimentStats;
  const feedback = await feedbackStatsInputs(tx, experiment_no, key);
  const scores = runScores(feedback);
  const name = { kind: "score" as const, key };
  if (scores.length === 0) await deleteVector(tx, experiment_no, name);
  else await putVector(tx, experiment_no, name, meanVector(scores));
  const { ofRuns, ofSession } = byTarget(feedback);
  const refreshed = {
    ...stats,
    feedback_stats: withKey(stats.feedback_stats, key, ofRuns),
    session_feedback_stats: withKey(stats.session_feedback_stats, key, ofSession),
  };
  await setStats(tx, experiment_no, JSON.stringify(refreshed));
}

const byTarget = (feedback: FeedbackStatsInput[]) => ({
  ofRuns: feedback.filter(isOnRun),
  ofSession: feedback.filter((row) => !isOnRun(row)),
});

/** Feedback on a traced run that is not a row of the experiment has no `example_index`. */
const isOnRun = ({ example_index, run_id }: FeedbackStatsInput): boolean => example_index !== null || run_id !== null;

function withKey(
  stats: ExperimentStats["feedback_stats"],
  key: string,
  feedback: FeedbackStatsInput[],
): ExperimentStats["feedback_stats"] {
  const { [key]: _, ...others } = stats;
  if (feedback.length === 0) return others;
  return Object.fromEntries(
    Object.entries({ ...others, [key]: keyStats(feedback) }).sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
