import type { Tx } from "../../platform/database/database.ts";
import { findExperimentByNo, setStats } from "../storage/experiments.ts";
import { type FeedbackStatsInput, feedbackStatsInputs } from "../storage/feedback.ts";
import { runOutcomes } from "../storage/runs.ts";
import { deleteVector, putVector } from "../storage/score-vectors.ts";
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
  const runs = await runOutcomes(tx, experiment_no);
  const feedback = await feedbackStatsInputs(tx, experiment_no);
  const latencies = runs.map((run) => ({ ...run, value: secondsOf(run) }));
  const errors = runs.map((run) => ({ ...run, value: run.error === null ? 0 : 1 }));
  await putVector(tx, experiment_no, { kind: "latency", key: "" }, meanVector(latencies));
  await putVector(tx, experiment_no, { kind: "error", key: "" }, meanVector(errors));
  for (const [key, rows] of Map.groupBy(feedback, ({ key }) => key)) {
    const scores = runScores(rows);
    if (scores.length > 0) await putVector(tx, experiment_no, { kind: "score", key }, meanVector(scores));
  }
  const { ofRuns, ofSession } = byTarget(feedback);
  const stats: ExperimentStats = {
    ...computeRunStats(runs),
    feedback_stats: feedbackStats(ofRuns),
    session_feedback_stats: feedbackStats(ofSession),
  };
  await setStats(tx, experiment_no, JSON.stringify(stats));
}

/** Updates the statistics and the vector of one feedback key. The caller holds the lock. */
export async function refreshKeyStats(tx: Tx, experiment_no: number, key: string): Promise<void> {
  const experiment = await findExperimentByNo(tx, experiment_no);
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
  ofRuns: feedback.filter(({ example_index }) => example_index !== null),
  ofSession: feedback.filter(({ example_index }) => example_index === null),
});

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
