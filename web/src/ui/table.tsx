import { type ReactNode, useState } from "react";
import { useKeys } from "../frame/keys.ts";
import { classes } from "./classes.ts";
import { isNarrow, useMedia } from "./media.ts";
import { TableCards } from "./table-cards.tsx";
import { type Column, type Sort, useColumnWidths } from "./table-columns.ts";
import { TableHead } from "./table-head.tsx";
import { TableRows } from "./table-rows.tsx";

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
 * Rows of a table, drawn as far as they are seen, below a header that stays; of columns that do not grow those that are seen, too. It
 * fills the height that its parent gives it; without one it is as high as its rows. On narrow screens a row is a card.
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
