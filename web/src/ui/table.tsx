import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useCallback, useMemo, useRef } from "react";
import { useKeys } from "../frame/keys.ts";
import { classes } from "./classes.ts";
import { isNarrow, useMedia } from "./media.ts";
import { TableCards } from "./table-cards.tsx";
import { isOfRow } from "./table-click.ts";
import { type Column, type SizedColumn, type Sort, useColumnWidths } from "./table-columns.ts";
import { TableHead } from "./table-head.tsx";
import { useRange } from "./table-range.ts";

export interface TableProps<Row> {
  /** For screen readers, and for the widths that people give to the columns. */
  name: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  /** 32 for one line, 56 for two. */
  rowHeight?: 32 | 56;
  /** The same of the header. */
  headHeight?: 32 | 56;
  keyOf(row: Row): string;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  /** A click on a row, or Enter on the chosen one. */
  onOpen?: (row: Row, index: number) => void;
  /** The chosen row: j and k move it when it can be changed. */
  selected?: string;
  onSelect?: (key: string, row: Row) => void;
  /** Called when the last rows are drawn: there may be more to fetch. */
  onEnd?: () => void;
  /** Called with the first and the last row that are drawn, when they change: rows may be places that are yet to be filled. */
  onRange?: (first: number, last: number) => void;
  /** Instead of rows when there are none. */
  empty?: ReactNode;
  className?: string;
}

/**
 * Rows of a table, drawn as far as they are seen, below a header that stays. It fills the height that its parent gives it; without
 * one it is as high as its rows. On narrow screens a row is a card.
 *
 * Rows are placed one by one, which <table> does not allow, so its roles are given. The keyboard has the link in the row, and
 * Enter on the chosen one.
 */
export function Table<Row>(props: TableProps<Row>) {
  const { rows, selected, keyOf, onSelect, onOpen } = props;
  const narrow = useMedia(isNarrow);
  const move = (by: number) => {
    const at = rows.findIndex((row) => keyOf(row) === selected);
    const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (next) onSelect?.(keyOf(next), next);
  };
  useKeys(
    onSelect
      ? {
          j: { does: "Next row", run: () => move(1) },
          k: { does: "Row before", run: () => move(-1) },
          ...(onOpen && {
            Enter: {
              does: "Open the row",
              run: () => {
                const at = rows.findIndex((row) => keyOf(row) === selected);
                if (at >= 0) onOpen(rows[at] as Row, at);
              },
            },
          }),
        }
      : {},
  );
  if (rows.length === 0 && props.empty) return props.empty;
  return narrow ? <TableCards {...props} /> : <Grid {...props} />;
}

function Grid<Row>(props: TableProps<Row>) {
  const { name, rows, columns, rowHeight = 32, headHeight, keyOf, sort, onSort, selected, onEnd, className } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const sized = useColumnWidths(name, columns);
  const width = sized.reduce((sum, column) => sum + column.width, 0);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => keyOf(rows[index] as Row),
    overscan: 8,
    onChange: ({ range }) => {
      if (range && range.endIndex >= rows.length - 5) onEnd?.();
    },
  });
  const at = useMemo(() => rows.findIndex((row) => keyOf(row) === selected), [rows, keyOf, selected]);
  useRange(virtual.range, props.onRange);
  const onOpen = useLatest(props.onOpen);
  const drawnFor = useRef(selected);
  if (drawnFor.current !== selected && at >= 0) queueMicrotask(() => virtual.scrollToIndex(at));
  drawnFor.current = selected;
  return (
    <div
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label={name}
      className={classes("min-h-0 overflow-auto", className)}
    >
      <div role="table" aria-label={name} aria-rowcount={rows.length + 1} style={{ minWidth: width }}>
        <TableHead sized={sized} sort={sort} onSort={onSort} height={headHeight} />
        <div role="rowgroup" className="relative" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, key, start }) => (
            <MemoRow
              key={key}
              row={rows[index] as Row}
              index={index}
              sized={sized as readonly SizedColumn<unknown>[]}
              top={start}
              height={rowHeight}
              isSelected={index === at}
              onOpen={props.onOpen && onOpen}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

/** The same function all along, which calls the latest one: rows need not be drawn again because it is another. */
function useLatest<Row>(
  latest: ((row: Row, index: number) => void) | undefined,
): (row: unknown, index: number) => void {
  const kept = useRef(latest);
  kept.current = latest;
  return useCallback((row, index) => kept.current?.(row as Row, index), []);
}

/** While the table scrolls only the rows that come are drawn: of 10 columns each costs half a millisecond. */
const MemoRow = memo(GridRow<unknown>);

interface GridRowProps<Row> {
  row: Row;
  index: number;
  sized: readonly SizedColumn<Row>[];
  top: number;
  height: number;
  isSelected: boolean;
  onOpen?: (row: Row, index: number) => void;
}

function GridRow<Row>({ row, index, sized, top, height, isSelected, onOpen }: GridRowProps<Row>) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      tabIndex={-1}
      aria-selected={isSelected || undefined}
      onClick={(event) => {
        // A selection of text has a click of its own, too.
        if (isOfRow(event) && !getSelection()?.toString()) onOpen?.(row, index);
      }}
      style={{ height, transform: `translateY(${top}px)` }}
      className={classes(
        "group/row absolute inset-x-0 top-0 flex border-line border-b text-table outline-none",
        isSelected ? "bg-selected" : "bg-bg hover:bg-hover",
        onOpen && "cursor-pointer",
      )}
    >
      {sized.map(({ column, width, left, isResized }) => (
        <div
          key={column.id}
          role="cell"
          style={{ width, left, flexGrow: column.grow && !isResized ? 1 : 0 }}
          className={classes(
            "flex min-w-0 shrink-0 items-center overflow-hidden px-3",
            column.numeric && "justify-end font-mono",
            left !== undefined && "sticky z-[1] bg-inherit",
          )}
        >
          <div className="min-w-0 truncate">{column.cell(row, index)}</div>
        </div>
      ))}
    </div>
  );
}
