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
  /** Loads the rows that the table shows. */
  onRange(first: number, last: number): void;
  /** Loads the row whose details are open, and its neighbours, in addition. */
  onOpened(at: number | undefined): void;
}

interface PageRange {
  from: number;
  to: number;
}

/** Number of rows to prefetch below the last rendered row: half a second of scrolling. */
const PREFETCH_ROWS = 50;

/** Rows of a comparison, with one slot per example. Pages are loaded while scrolling. */
export function useRows(dataset_id: string, narrowing: Narrowing): Rows {
  const [filled] = useState(() => new Slots());
  // The state contains page numbers instead of row numbers, so that scrolling within a page renders only new rows.
  const [range, setRange] = useState<PageRange>({ from: 0, to: 0 });
  const [opened, setOpened] = useState<PageRange>();
  const first_page = useQuery({
    ...rowsQuery(dataset_id, narrowing, 0),
    placeholderData: (before) => before,
  });
  const total = first_page.data?.total;
  const lastPage = Math.ceil((total ?? 0) / PAGE) - 1;
  const visible = first_page.isPlaceholderData
    ? []
    : [...new Set([...pagesOf(range), ...(opened ? pagesOf(opened) : [])])].filter((page) => page <= lastPage);
  const others = useQueries({
    queries: visible.map((page) => ({ ...rowsQuery(dataset_id, narrowing, page), enabled: page > 0 })),
  });
  const pages = new Map(visible.map((page, index) => [page, others[index]?.data?.rows]));
  pages.set(0, first_page.data?.rows);
  const failed = [first_page, ...others].find(({ error }) => error);
  const onRange = useCallback((first: number, last: number) => {
    const given = { from: Math.floor(first / PAGE), to: Math.floor((last + PREFETCH_ROWS) / PAGE) };
    setRange((before) => (before.from === given.from && before.to === given.to ? before : given));
  }, []);
  const onOpened = useCallback((at: number | undefined) => {
    const beside = (by: number) => Math.floor(Math.max(0, (at ?? 0) + by) / PAGE);
    setOpened(at === undefined ? undefined : { from: beside(-1), to: beside(1) });
  }, []);
  const slots = () => (first_page.isPlaceholderData ? filled.all : filled.filled(narrowing, total ?? 0, pages));
  return {
    slots: total === undefined ? undefined : slots(),
    total,
    error: failed?.error ?? null,
    retry: () => void failed?.refetch(),
    isPlaceholder: first_page.isPlaceholderData,
    onRange,
    onOpened,
  };
}

const pagesOf = ({ from, to }: PageRange): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
