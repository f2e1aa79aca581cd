import type { Search } from "./search.ts";
import type { View } from "./view.ts";

/** Sort order of the table, in terms of worst and best instead of high and low. */
export interface Order {
  by: "score" | "latency";
  /** Score key. Undefined when sorting by latency. */
  key: string | undefined;
  session_id: string;
  /** Whether to sort by the difference from the baseline. */
  delta: boolean;
  worstFirst: boolean;
}

type Known = Pick<View, "keys">;

const isLowerBetter = ({ keys }: Known, by: Order["by"], key: string | undefined): boolean =>
  by === "latency" || (keys.find(({ name }) => name === key)?.isLowerBetter ?? false);

/** Returns the URL parameters for a sort order. */
export const orderPatch = (known: Known, { by, key, session_id, delta, worstFirst }: Order): Partial<Search> => ({
  sort: by,
  sortKey: key,
  sortIn: session_id,
  delta: delta || undefined,
  ascending: isLowerBetter(known, by, key) !== worstFirst || undefined,
});

/** URL parameters that remove the sort order, so that the examples are in the order of the dataset. */
export const NO_ORDER = {
  sort: undefined,
  sortKey: undefined,
  sortIn: undefined,
  delta: undefined,
  ascending: undefined,
} satisfies Partial<Search>;

/** Reads the sort order from the URL. Returns undefined for the dataset order. */
export function orderOf(view: Pick<View, "keys" | "shown">, search: Search): Order | undefined {
  const { sort: by, sortKey: key, sortIn, delta = false, ascending = false } = search;
  const index = view.shown.findIndex(({ id }) => id === sortIn);
  // The baseline has no difference to sort by.
  if (!by || index < 0 || (delta && index === 0)) return undefined;
  const worstFirst = isLowerBetter(view, by, key) !== ascending;
  return { by, key, session_id: sortIn as string, delta, worstFirst };
}

/**
 * Returns the URL parameters after a click on a score header: worst first, best first, then dataset order. The baseline's column sorts
 * by the score; the columns of other experiments sort by the difference from the baseline.
 */
export function nextOrder(view: Pick<View, "keys" | "shown">, search: Search, key: string, session_id: string) {
  const order = orderOf(view, search);
  const delta = session_id !== view.shown[0]?.id;
  const isThis = isOrderOf(order, key, session_id) && order?.delta === delta;
  if (isThis && !order?.worstFirst) return NO_ORDER;
  return orderPatch(view, { by: "score", key, session_id, delta, worstFirst: !isThis });
}

const isOrderOf = (order: Order | undefined, key: string | undefined, session_id: string | undefined): boolean =>
  order?.by === "score" && order.key === key && order.session_id === session_id;

/** Whether the table is sorted by the difference that the filter for better or worse examples uses. */
export function isOrderOfChange(view: Pick<View, "keys" | "shown">, search: Search): boolean {
  const order = orderOf(view, search);
  return search.change !== undefined && order?.delta === true && isOrderOf(order, search.changeKey, search.changeIn);
}

/**
 * Returns the URL parameters that show only the examples with a better or worse score for a key, largest change first. If `change` is
 * undefined, the parameters remove the filter and its sort order.
 */
export function changePatch(
  view: Pick<View, "keys" | "shown">,
  search: Search,
  change: "better" | "worse" | undefined,
  key: string,
  session_id: string,
): Partial<Search> {
  if (!change)
    return {
      change: undefined,
      changeKey: undefined,
      changeIn: undefined,
      ...(isOrderOfChange(view, search) && NO_ORDER),
    };
  const order: Order = { by: "score", key, session_id, delta: true, worstFirst: change === "worse" };
  return { change, changeKey: key, changeIn: session_id, ...orderPatch(view, order) };
}
