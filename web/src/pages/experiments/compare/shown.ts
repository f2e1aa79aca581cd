import type { Session } from "../../../../../src/experiments/contract/sessions.ts";
import { listOf, type Search } from "./search.ts";

/** As many experiments are compared at a time. */
export const MAX_EXPERIMENTS = 10;

/** The experiments that the address names. */
export const chosenIds = ({ experiments }: Pick<Search, "experiments">): string[] =>
  listOf(experiments).slice(0, MAX_EXPERIMENTS);

/**
 * Those that are shown, the baseline first, and those that are hidden.
 *
 * @param named the baseline as the address or else the dataset names it; without one it is the first
 * @param without the ids of hidden ones, as the address has them
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
