import { useCallback, useEffect, useMemo, useRef } from "react";
import type { TableProps } from "./table.tsx";
import type { SizedColumn } from "./table-columns.ts";
import { useRange } from "./table-range.ts";
import { type DrawnColumn, TableRow } from "./table-row.tsx";
import { type Shape, useSeen } from "./table-seen.ts";

/** So many rows before the last one it is time to fetch more. */
const NEAR_END = 5;

/** The rows and columns of a table that are seen. It alone is drawn again while the table scrolls. */
export function TableRows<Row>({
  scroller,
  sized,
  rows,
  rowHeight = 32,
  headHeight = 32,
  keyOf,
  selected,
  onOpen,
  onEnd,
  onRange,
}: TableProps<Row> & { scroller: HTMLElement | null; sized: readonly SizedColumn<Row>[] }) {
  const { edges, pinned } = useMemo(() => layoutOf(sized), [sized]);
  const seen = useSeen(scroller, { rows: rows.length, rowHeight, edges, pinned });
  const { fromRow, toRow, fromColumn, toColumn } = seen;
  const drawn = useMemo(() => drawnOf(sized, fromColumn, toColumn), [sized, fromColumn, toColumn]);
  const at = useMemo(() => rows.findIndex((row) => keyOf(row) === selected), [rows, keyOf, selected]);
  const open = useLatest(onOpen);
  useRange(fromRow, toRow, onRange);
  const end = useLatest(onEnd);
  useEffect(() => {
    if (toRow > 0 && toRow >= rows.length - NEAR_END) end();
  }, [toRow, rows.length, end]);
  const shownFor = useRef(selected);
  useEffect(() => {
    if (scroller && shownFor.current !== selected && at >= 0) scrollTo(scroller, at, rowHeight, headHeight);
    shownFor.current = selected;
  }, [selected, at, scroller, rowHeight, headHeight]);
  return (
    <div role="rowgroup" className="relative" style={{ height: rows.length * rowHeight }}>
      {rows.slice(fromRow, toRow).map((row, index) => (
        <TableRow
          key={keyOf(row)}
          row={row}
          index={fromRow + index}
          drawn={drawn}
          height={rowHeight}
          isSelected={fromRow + index === at}
          onOpen={onOpen && open}
        />
      ))}
    </div>
  );
}

/** Where columns begin. How wide one is that grows is not known: then all are taken to be seen. */
function layoutOf<Row>(sized: readonly SizedColumn<Row>[]): Pick<Shape, "edges" | "pinned"> {
  const edges = [0];
  for (const { width } of sized) edges.push((edges.at(-1) as number) + width);
  const pinned = sized.reduce((sum, { left, width }) => sum + (left === undefined ? 0 : width), 0);
  const isKnown = sized.every(({ column, isResized }) => !column.grow || isResized);
  return { edges: isKnown ? edges : undefined, pinned };
}

/** Columns that stay at the left are always drawn. */
function drawnOf<Row>(sized: readonly SizedColumn<Row>[], from: number, to: number): DrawnColumn<Row>[] {
  let gap = 0;
  return sized.flatMap((column, index) => {
    const isPinned = column.left !== undefined;
    if (!isPinned && index < from) gap += column.width;
    if (!isPinned && (index < from || index >= to)) return [];
    const drawn = { sized: column, index, gap: isPinned ? 0 : gap };
    if (!isPinned) gap = 0;
    return drawn;
  });
}

/** As far as needed to see all of a row, which the header does not cover either. */
function scrollTo(scroller: HTMLElement, at: number, rowHeight: number, headHeight: number): void {
  const top = at * rowHeight;
  const lowest = top + rowHeight + headHeight - scroller.clientHeight;
  scroller.scrollTop = Math.max(lowest, Math.min(top, scroller.scrollTop));
}

/** The same function all along, which calls the latest one: rows need not be drawn again because it is another. */
function useLatest<Given extends unknown[]>(
  latest: ((...given: Given) => void) | undefined,
): (...given: Given) => void {
  const kept = useRef(latest);
  kept.current = latest;
  return useCallback((...given) => kept.current?.(...given), []);
}
