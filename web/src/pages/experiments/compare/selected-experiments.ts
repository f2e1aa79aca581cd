import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { listOf, type Search } from "./search.ts";

/** Maximum number of experiments in a comparison. */
export const MAX_EXPERIMENTS = 10;

/** Returns the experiment IDs in the URL, at most {@link MAX_EXPERIMENTS}. */
export const chosenIds = ({ experiments }: Pick<Search, "experiments">): string[] =>
  listOf(experiments).slice(0, MAX_EXPERIMENTS);

/**
 * Returns the visible experiments, baseline first, and the hidden experiments.
 *
 * @param named baseline ID from the URL or the dataset. Default: the first experiment
 * @param without comma-separated IDs of hidden experiments, as in the URL
 */
export function shownOf(
  ids: readonly string[],
  sessions: readonly Session[],
  named: string | null | undefined,
  without: string | undefined,
): { shown: readonly Session[]; hidden: readonly Session[] } {
  const known = ids.flatMap((id) => sessions.find((session) => session.id === id) ?? []);
  const baseline = known.find(({ id }) => id === named) ?? known[0];
  const isHidden = ({ id }: Session) => id !== baseline?.id && listOf(without).includes(id);
  const others = known.filter((session) => session !== baseline && !isHidden(session));
  return { shown: baseline ? [baseline, ...others] : [], hidden: known.filter(isHidden) };
}
