import { number } from "../../../../ui/format.ts";
import { orderOf } from "../order.ts";
import { listOf, type Search } from "../search.ts";
import type { View } from "../view.ts";

/** An active filter, shown as an experiment name and a condition. `without` contains the URL parameters that remove the filter. */
export interface Chip {
  /** Name of the experiment. The page truncates long names. */
  experiment: string;
  condition: string;
  without: Partial<Search>;
}

export function chipsOf({ shown }: View, search: Search): Chip[] {
  const nameOf = (id: string | undefined) => shown.find((session) => session.id === id)?.name;
  const chips: Chip[] = [];
  const { change, changeKey, changeIn, ranges = [], where, whereIn = shown[0]?.id } = search;
  const changed = nameOf(changeIn);
  if (change && changed !== undefined)
    chips.push({
      experiment: changed,
      condition: `${changeKey} · ${change}`,
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
      experiment: nameOf(id) ?? "a hidden experiment",
      condition: `${key} ${bounds}`,
      without: { ranges: rest.length > 0 ? rest : undefined },
    });
  }
  const failed = listOf(search.failed).flatMap((id) => nameOf(id) ?? []);
  if (failed.length > 0)
    chips.push({ experiment: failed.join(" or "), condition: "failed", without: { failed: undefined } });
  const asked = nameOf(whereIn);
  if (where && asked !== undefined)
    chips.push({ experiment: asked, condition: where, without: { where: undefined, whereIn: undefined } });
  return chips;
}

/** Describes the sort order, for example `Δ correct · worst first`. Returns undefined for the dataset order. */
export function sortLabel(view: View, search: Search): Omit<Chip, "without"> | undefined {
  const order = orderOf(view, search);
  const session = view.shown.find(({ id }) => id === order?.session_id);
  if (!order || !session) return undefined;
  const { by, key, delta, worstFirst } = order;
  const measure = by === "latency" ? "latency" : key;
  return {
    experiment: session.name,
    condition: `${delta ? "Δ " : ""}${measure} · ${worstFirst ? "worst" : "best"} first`,
  };
}
