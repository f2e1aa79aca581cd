import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import type { ComparedRow } from "../../../../../src/contract/app/comparison.ts";
import { type Narrowing, PAGE, rowsQuery } from "./queries.ts";

/** A place in the table; its row comes when it is scrolled to. */
export interface Slot {
  index: number;
  row: ComparedRow | undefined;
}

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

/** The rows of a comparison: as many places as there are examples, filled page by page where they are looked at. */
export function useRows(dataset_id: string, narrowing: Narrowing): Rows {
  const client = useQueryClient();
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
  // Those that were looked at before stay filled.
  const known = total === undefined ? [] : Array.from({ length: Math.ceil(total / PAGE) }, (_, page) => page);
  const pages = known.map((page) =>
    page === 0 ? beginning.data?.rows : client.getQueryData(rowsQuery(dataset_id, narrowing, page).queryKey)?.rows,
  );
  const filled = pages.map((rows) => rows?.[0]?.example_id ?? "").join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the pages are new lists each time; the first ids and the query say whether they changed
  const slots = useMemo(
    () =>
      total === undefined
        ? undefined
        : Array.from(
            { length: total },
            (_, index): Slot => ({ index, row: pages[Math.floor(index / PAGE)]?.[index % PAGE] }),
          ),
    [total, filled, narrowing, beginning.dataUpdatedAt, ...others.map(({ dataUpdatedAt }) => dataUpdatedAt)],
  );
  const failed = [beginning, ...others].find(({ error }) => error);
  const onRange = useCallback((first: number, last: number) => {
    const [from, to] = [Math.floor(first / PAGE), Math.floor(last / PAGE)];
    setLooked((before) => (before.from === from && before.to === to ? before : { from, to }));
  }, []);
  return {
    slots,
    total,
    error: failed?.error ?? null,
    retry: () => void failed?.refetch(),
    isOld: beginning.isPlaceholderData,
    onRange,
  };
}
