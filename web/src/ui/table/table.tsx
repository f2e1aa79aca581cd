import { type ReactNode, useState } from "react";
import { useKeys } from "../../frame/keys.ts";
import { classes, isNarrow, useMedia } from "../layout.tsx";
import { TableCards } from "./cards.tsx";
import { type Column, type Sort, useColumnWidths } from "./columns.ts";
import { TableHead } from "./head.tsx";
import { TableRows } from "./rows.tsx";

export interface TableProps<Row> {
  /** The accessible name, and the storage key of the column widths. */
  name: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  /** In pixels: 32 for one line, 56 for two. */
  rowHeight?: 32 | 56;
  headHeight?: 32 | 56;
  keyOf(row: Row): string;
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  /** Called for a click on a row, or Enter on the selected row. */
  onOpen?: (row: Row, index: number) => void;
  /** The key of the selected row. j and k change it if `onSelect` is given. */
  selected?: string;
  onSelect?: (key: string, row: Row) => void;
  /** Called when the last rows are rendered, to fetch more. */
  onEnd?: () => void;
  /** Called with the first and last rendered row when they change: rows may be placeholders to load. */
  onRange?: (first: number, last: number) => void;
  /** Shown instead of an empty table. */
  empty?: ReactNode;
  className?: string;
}

/**
 * A virtualized table with a sticky header. Only visible rows are rendered, and only visible columns if no column grows. The table
 * fills the height of its parent; without one it is as high as its rows. On narrow screens a row is a card.
 *
 * Rows are positioned absolutely, which <table> does not allow, so the elements have table roles. By keyboard, a row opens with its
 * link, or with Enter if it is selected.
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
  const { name, rows, columns, headHeight, sort, onSort, className } = props;
  const [scroller, setScroller] = useState<HTMLElement | null>(null);
  const sized = useColumnWidths(name, columns);
  const width = sized.reduce((sum, column) => sum + column.width, 0);
  return (
    <div
      ref={setScroller}
      tabIndex={0}
      role="region"
      aria-label={name}
      className={classes("min-h-0 overflow-auto", className)}
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
