import { useQueries, useQuery } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { type Narrowing, PAGE, rowsQuery } from "./queries.ts";
import { type Slot, Slots } from "./slots.ts";

export interface Rows {
  slots: readonly Slot[] | undefined;
  total: number | undefined;
  error: Error | null;
  retry(): void;
  /** What is shown is of the filters before. */
  isOld: boolean;
  /** Fetches what is drawn and is not there yet. */
  onRange(first: number, last: number): void;
}

/** Rows behind the last one that is drawn whose page is fetched, too: what is scrolled to in half a second. */
const AHEAD = 50;

/** The rows of a comparison: as many places as there are examples, filled page by page where they are looked at. */
export function useRows(dataset_id: string, narrowing: Narrowing): Rows {
  const [kept] = useState(() => new Slots());
  // Pages, not rows: while one scrolls within a page nothing but the rows that come is drawn.
  const [looked, setLooked] = useState({ from: 0, to: 0 });
  const beginning = useQuery({
    ...rowsQuery(dataset_id, narrowing, 0),
    placeholderData: (before) => before,
  });
  const total = beginning.data?.total;
  const lastPage = Math.ceil((total ?? 0) / PAGE) - 1;
  const length = beginning.isPlaceholderData ? 0 : Math.max(0, Math.min(looked.to, lastPage) - looked.from + 1);
  const wanted = Array.from({ length }, (_, index) => looked.from + index);
  const others = useQueries({
    queries: wanted.map((page) => ({ ...rowsQuery(dataset_id, narrowing, page), enabled: page > 0 })),
  });
  const pages = new Map(wanted.map((page, index) => [page, others[index]?.data?.rows]));
  pages.set(0, beginning.data?.rows);
  const failed = [beginning, ...others].find(({ error }) => error);
  const onRange = useCallback((first: number, last: number) => {
    const [from, to] = [Math.floor(first / PAGE), Math.floor((last + AHEAD) / PAGE)];
    setLooked((before) => (before.from === from && before.to === to ? before : { from, to }));
  }, []);
  const slots = () => (beginning.isPlaceholderData ? kept.all : kept.filled(narrowing, total ?? 0, pages));
  return {
    slots: total === undefined ? undefined : slots(),
    total,
    error: failed?.error ?? null,
    retry: () => void failed?.refetch(),
    isOld: beginning.isPlaceholderData,
    onRange,
  };
}
