import { useQueries, useQuery } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { type Narrowing, PAGE, rowsQuery } from "../queries.ts";
import { type Slot, Slots } from "./slots.ts";

export interface Rows {
  slots: readonly Slot[] | undefined;
  total: number | undefined;
  error: Error | null;
  retry(): void;
  /** Whether the rows still belong to the previous filters or sort order. */
  isPlaceholder: boolean;
  onRange(first: number, last: number): void;
}

/** Number of rows to prefetch below the last rendered row: half a second of scrolling. */
const PREFETCH_ROWS = 50;

/** Rows of a comparison, with one slot per example. Pages are loaded while scrolling. */
export function useRows(dataset_id: string, narrowing: Narrowing): Rows {
  const [filled] = useState(() => new Slots());
  // The state contains page numbers instead of row numbers, so that scrolling within a page renders only new rows.
  const [range, setRange] = useState({ from: 0, to: 0 });
  const first_page = useQuery({
    ...rowsQuery(dataset_id, narrowing, 0),
    placeholderData: (before) => before,
  });
  const total = first_page.data?.total;
  const lastPage = Math.ceil((total ?? 0) / PAGE) - 1;
  const length = first_page.isPlaceholderData ? 0 : Math.max(0, Math.min(range.to, lastPage) - range.from + 1);
  const visible = Array.from({ length }, (_, index) => range.from + index);
  const others = useQueries({
    queries: visible.map((page) => ({ ...rowsQuery(dataset_id, narrowing, page), enabled: page > 0 })),
  });
  const pages = new Map(visible.map((page, index) => [page, others[index]?.data?.rows]));
  pages.set(0, first_page.data?.rows);
  const failed = [first_page, ...others].find(({ error }) => error);
  const onRange = useCallback((first: number, last: number) => {
    const [from, to] = [Math.floor(first / PAGE), Math.floor((last + PREFETCH_ROWS) / PAGE)];
    setRange((before) => (before.from === from && before.to === to ? before : { from, to }));
  }, []);
  const slots = () => (first_page.isPlaceholderData ? filled.all : filled.filled(narrowing, total ?? 0, pages));
  return {
    slots: total === undefined ? undefined : slots(),
    total,
    error: failed?.error ?? null,
    retry: () => void failed?.refetch(),
    isPlaceholder: first_page.isPlaceholderData,
    onRange,
  };
}
