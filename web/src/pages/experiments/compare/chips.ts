import { number } from "../../../ui/format.ts";
import { orderOf } from "./order.ts";
import { listOf, type Search } from "./search.ts";
import type { View } from "./view.ts";

/** A filter that is on, in words, and the change of the address that takes it away. */
export interface Chip {
  /** The experiment that it is about; of a long name the rest is left out, never of what is said. */
  about: string;
  said: string;
  without: Partial<Search>;
}

export function chipsOf({ shown }: View, search: Search): Chip[] {
  const nameOf = (id: string | undefined) => shown.find((session) => session.id === id)?.name;
  const chips: Chip[] = [];
  const { change, changeKey, changeIn, ranges = [], where, whereIn = shown[0]?.id } = search;
  const changed = nameOf(changeIn);
  if (change && changed !== undefined)
    chips.push({
      about: changed,
      said: `${changeKey} · ${change}`,
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
      about: nameOf(id) ?? "a hidden experiment",
      said: `${key} ${bounds}`,
      without: { ranges: rest.length > 0 ? rest : undefined },
    });
  }
  const failed = listOf(search.failed).flatMap((id) => nameOf(id) ?? []);
  if (failed.length > 0) chips.push({ about: failed.join(" or "), said: "failed", without: { failed: undefined } });
  const asked = nameOf(whereIn);
  if (where && asked !== undefined)
    chips.push({ about: asked, said: where, without: { where: undefined, whereIn: undefined } });
  return chips;
}

/** The order in words: `second try`, `Δ correct · worst first`; undefined for that of the dataset. */
export function sortWords(view: View, search: Search): Omit<Chip, "without"> | undefined {
  const order = orderOf(view, search);
  const session = view.shown.find(({ id }) => id === order?.session_id);
  if (!order || !session) return undefined;
  const { by, key, delta, worstFirst } = order;
  const what = by === "latency" ? "latency" : key;
  return { about: session.name, said: `${delta ? "Δ " : ""}${what} · ${worstFirst ? "worst" : "best"} first` };
}
