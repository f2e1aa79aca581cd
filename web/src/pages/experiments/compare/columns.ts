import { listOf, type Search } from "./search.ts";
import type { Key, View } from "./view.ts";

/** Scores that are shown in a cell unless somebody asks for more: with them three experiments are seen at 1280 pixels. */
const USUAL_SCORES = 3;

/**
 * The columns that are not shown: those that the address names, or else latency, labels and further scores. Where nothing
 * has a score, labels are what is compared.
 */
export function columnsWithout({ keys }: View, { without }: Search): string[] {
  if (without !== undefined) return listOf(without);
  const scored = keys.filter(({ distribution }) => distribution);
  const usual = (scored.length > 0 ? scored : keys).slice(0, USUAL_SCORES);
  return ["latency", ...keys.filter((key) => !usual.includes(key)).map(({ name }) => `score:${name}`)];
}

/** The keys whose scores are shown in cells. */
export function keysShown(view: View, search: Search): Key[] {
  const without = columnsWithout(view, search);
  return view.keys.filter(({ name }) => !without.includes(`score:${name}`));
}
