import { number } from "../../../ui/format.ts";
import { listOf, type Search } from "./search.ts";
import type { View } from "./view.ts";

/** A filter that is on, in words, and the change of the address that takes it away. */
export interface Chip {
  label: string;
  without: Partial<Search>;
}

const CHANGES = { better: "Better", worse: "Worse", changed: "Changed" } as const;

export function chipsOf({ shown }: View, search: Search): Chip[] {
  const nameOf = (id: string | undefined) => shown.find((session) => session.id === id)?.name;
  const chips: Chip[] = [];
  const { change, changeKey, changeIn, ranges = [], where, whereIn = shown[0]?.id } = search;
  if (change && nameOf(changeIn))
    chips.push({
      label: `${CHANGES[change]} than the baseline: ${changeKey} in ${nameOf(changeIn)}`.replace(
        "Changed than",
        "Changed from",
      ),
      without: { change: undefined, changeKey: undefined, changeIn: undefined },
    });
  for (const range of ranges) {
    const { min, max, key, in: id } = range;
    const bounds =
      min === undefined
        ? `≤ ${number(max)}`
        : max === undefined
          ? `≥ ${number(min)}`
          : `${number(min)} to ${number(max)}`;
    const rest = ranges.filter((other) => other !== range);
    chips.push({
      label: `${key} ${bounds} in ${nameOf(id) ?? "a hidden experiment"}`,
      without: { ranges: rest.length > 0 ? rest : undefined },
    });
  }
  const failed = listOf(search.failed).flatMap((id) => nameOf(id) ?? []);
  if (failed.length > 0) chips.push({ label: `Failed in ${failed.join(" or ")}`, without: { failed: undefined } });
  if (where && nameOf(whereIn))
    chips.push({ label: `${where} in ${nameOf(whereIn)}`, without: { where: undefined, whereIn: undefined } });
  return chips;
}

/** The order in words: `Δ correct in second try`. */
export function sortLabel({ shown }: View, { sort, sortKey, sortIn, delta, ascending }: Search): string {
  const session = shown.find(({ id }) => id === sortIn);
  if (!sort || !session) return "Sort";
  return `${delta ? "Δ " : ""}${sort === "latency" ? "latency" : sortKey} in ${session.name} ${ascending ? "↑" : "↓"}`;
}
