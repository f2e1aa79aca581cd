import { listOf, type Search } from "../search.ts";
import type { Key, View } from "../view.ts";

/** Default number of scores in a cell. With three scores, three experiments fit into 1280 pixels. */
const DEFAULT_SCORES = 3;

/**
 * Returns the hidden columns: those in the URL, or by default the latency, the labels and all scores after the third. If no key has
 * scores, the first three keys are visible.
 */
export function hiddenColumns({ keys }: View, { without }: Search): string[] {
  if (without !== undefined) return listOf(without);
  const scored = keys.filter(({ distribution }) => distribution);
  const usual = (scored.length > 0 ? scored : keys).slice(0, DEFAULT_SCORES);
  return ["latency", ...keys.filter((key) => !usual.includes(key)).map(({ name }) => `score:${name}`)];
}

/** Returns the keys whose scores are shown in cells. */
export function visibleKeys(view: View, search: Search): Key[] {
  const without = hiddenColumns(view, search);
  return view.keys.filter(({ name }) => !without.includes(`score:${name}`));
}
