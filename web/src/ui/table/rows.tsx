import { useCallback, useEffect, useMemo, useRef } from "react";
import type { SizedColumn } from "./columns.ts";
import { type DrawnColumn, TableRow } from "./row.tsx";
import { useVisibleRange } from "./row-events.ts";
import type { TableProps } from "./table.tsx";
import { type TableLayout, useVisibleArea } from "./visible-area.ts";

/** Number of rows before the end at which more rows are fetched. */
const NEAR_END = 5;

/** Visible rows and columns of a table. Scrolling re-renders only this component. */
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
  const visible = useVisibleArea(scroller, { rows: rows.length, rowHeight, edges, pinned });
  const { fromRow, toRow, fromColumn, toColumn } = visible;
  const drawn = useMemo(() => drawnColumns(sized, fromColumn, toColumn), [sized, fromColumn, toColumn]);
  const at = useMemo(() => rows.findIndex((row) => keyOf(row) === selected), [rows, keyOf, selected]);
  const open = useLatest(onOpen);
  useVisibleRange(fromRow, toRow, onRange);
  const end = useLatest(onEnd);
  useEffect(() => {
    if (toRow > 0 && toRow >= rows.length - NEAR_END) end();
  }, [toRow, rows.length, end]);
  const lastSelected = useRef(selected);
  useEffect(() => {
    if (scroller && lastSelected.current !== selected && at >= 0) scrollTo(scroller, at, rowHeight, headHeight);
    lastSelected.current = selected;
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

/**
 * Returns the columns' edges and the sticky columns' total width. The edges are unknown if a growing column has not been resized.
 */
function layoutOf<Row>(sized: readonly SizedColumn<Row>[]): Pick<TableLayout, "edges" | "pinned"> {
  const edges = [0];
  for (const { width } of sized) edges.push((edges.at(-1) as number) + width);
  const pinned = sized.reduce((sum, { left, width }) => sum + (left === undefined ? 0 : width), 0);
  const isKnown = sized.every(({ column, isResized }) => !column.grow || isResized);
  return { edges: isKnown ? edges : undefined, pinned };
}

/** Returns the columns to render, which always include the sticky columns. */
function drawnColumns<Row>(sized: readonly SizedColumn<Row>[], from: number, to: number): DrawnColumn<Row>[] {
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

function scrollTo(scroller: HTMLElement, at: number, rowHeight: number, headHeight: number): void {
  const top = at * rowHeight;
  const lowest = top + rowHeight + headHeight - scroller.clientHeight;
  scroller.scrollTop = Math.max(lowest, Math.min(top, scroller.scrollTop));
}

/** Returns a stable function that calls the latest callback, so that a new callback does not re-render the rows. */
function useLatest<Given extends unknown[]>(
  latest: ((...given: Given) => void) | undefined,
): (...given: Given) => void {
  const current = useRef(latest);
  current.current = latest;
  return useCallback((...given) => current.current?.(...given), []);
}
