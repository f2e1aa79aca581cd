import { type ReactNode, useEffect, useState } from "react";
import { useKeys } from "../../frame/keys.ts";
import { classes, isNarrow, useMedia } from "../layout.tsx";
import { TableCards } from "./cards.tsx";
import { type Column, type Sort, useColumnWidths } from "./columns.ts";
import { TableHead } from "./head.tsx";
import { TableRows } from "./rows.tsx";

export interface TableProps<Row> {
  /** Accessible name, also part of the local storage key of the column widths. */
  name: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  /** Row height in pixels: 32 for one line, 56 for two lines. */
  rowHeight?: 32 | 56;
  headHeight?: 32 | 56;
  keyOf(row: Row): string;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  /** Called when the user clicks a row or presses Enter on the selected row. */
  onOpen?: (row: Row, index: number) => void;
  /** Key of the selected row. If `onSelect` is given, j and k change the selection. */
  selected?: string;
  onSelect?: (key: string, row: Row) => void;
  /** Called when the last rows are rendered, so that the caller can fetch more rows. */
  onEnd?: () => void;
  /** Called with the indexes of the first and last rendered rows when these change, so that the caller can load the rows' data. */
  onRange?: (first: number, last: number) => void;
  /** Called with the widths of the columns when these change. */
  onWidths?: (widths: readonly number[]) => void;
  /** Element that scrolls the cards of a narrow screen together with what is above them. Default: the cards scroll by themselves. */
  scroller?: HTMLElement | null;
  /** Shown instead of a table without rows. */
  empty?: ReactNode;
  className?: string;
}

/**
 * A virtualized table with a sticky header. Only visible rows are rendered, and only visible columns if no column grows. The table fills
 * its parent's height; if the parent has no height, the table is as high as its rows. On narrow screens, each row is a card.
 *
 * The elements have table roles, because rows are positioned absolutely and <table> does not allow that. With the keyboard, open a row by
 * its link, or select it and press Enter.
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
          k: { does: "Previous row", run: () => move(-1) },
          ...(onOpen && {
            Enter: {
              does: "Open row",
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
  const { name, rows, columns, headHeight, sort, onSort, onWidths, className } = props;
  const [scroller, setScroller] = useState<HTMLElement | null>(null);
  const sized = useColumnWidths(name, columns);
  const width = sized.reduce((sum, column) => sum + column.width, 0);
  useEffect(() => onWidths?.(sized.map((column) => column.width)), [sized, onWidths]);
  return (
    <div
      ref={setScroller}
      tabIndex={0}
      role="region"
      aria-label={name}
      className={classes("relative min-h-0 overflow-auto", className)}
    >
      <div
        role="table"
        aria-label={name}
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.length}
        style={{ minWidth: width }}
      >
        <TableHead sized={sized} sort={sort} onSort={onSort} height={headHeight} />
        <TableRows {...props} scroller={scroller} sized={sized} />
      </div>
    </div>
  );
}
