import type { Tx } from "../platform/database/database.ts";
import {
  type ExperimentStats,
  feedbackStats,
  figuresOf,
  keyStats,
  type Placed,
  scoresOf,
  secondsOf,
  vectorOf,
} from "./stats.ts";
import { findExperimentByNo } from "./storage/experiments.ts";
import { judgementsOf } from "./storage/feedback.ts";
import { measuresOf } from "./storage/runs.ts";
import { deleteVector, putVector } from "./storage/vectors.ts";

/** Computes statistics and vectors of an experiment from its rows, stores the vectors, and answers the statistics as JSON. */
export async function renewStats(tx: Tx, experiment_no: number): Promise<string> {
  const runs = await measuresOf(tx, experiment_no);
  const judgements = await judgementsOf(tx, experiment_no);
  const place = ({ ord, repetition }: Omit<Placed, "value">, value: number): Placed => ({ ord, repetition, value });
  const latencies = runs.map((run) => place(run, secondsOf(run)));
  const errors = runs.map((run) => place(run, run.error === null ? 0 : 1));
  await putVector(tx, experiment_no, { kind: "latency", key: "" }, vectorOf(latencies));
  await putVector(tx, experiment_no, { kind: "error", key: "" }, vectorOf(errors));
  for (const [key, of] of Map.groupBy(judgements, ({ key }) => key)) {
    const scores = scoresOf(of);
    if (scores.length > 0) await putVector(tx, experiment_no, { kind: "score", key }, vectorOf(scores));
  }
  const stats: ExperimentStats = {
    ...figuresOf(runs),
    feedback_stats: feedbackStats(judgements.filter(({ ord }) => ord !== null)),
    session_feedback_stats: feedbackStats(judgements.filter(({ ord }) => ord === null)),
  };
  return JSON.stringify(stats);
}

/** The same after a change of the feedback of one key; nothing else of the experiment is read. */
export async function renewKey(tx: Tx, experiment_no: number, key: string): Promise<string> {
  const experiment = await findExperimentByNo(tx, experiment_no);
  const stats = JSON.parse(experiment?.stats ?? "{}") as ExperimentStats;
  const judgements = await judgementsOf(tx, experiment_no, key);
  const scores = scoresOf(judgements);
  const name = { kind: "score" as const, key };
  if (scores.length === 0) await deleteVector(tx, experiment_no, name);
  else await putVector(tx, experiment_no, name, vectorOf(scores));
  const ofRuns = judgements.filter(({ ord }) => ord !== null);
  const ofSession = judgements.filter(({ ord }) => ord === null);
  return JSON.stringify({
    ...stats,
    feedback_stats: withKey(stats.feedback_stats, key, ofRuns),
    session_feedback_stats: withKey(stats.session_feedback_stats, key, ofSession),
  });
}

function withKey(
  stats: ExperimentStats["feedback_stats"],
  key: string,
  judgements: Parameters<typeof keyStats>[0],
): ExperimentStats["feedback_stats"] {
  const { [key]: _, ...others } = stats;
  if (judgements.length === 0) return others;
  return Object.fromEntries(
    Object.entries({ ...others, [key]: keyStats(judgements) }).sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
