import { memo } from "react";
import { classes } from "../layout.tsx";
import type { SizedColumn } from "./columns.ts";
import { FIRST_CELL } from "./head.tsx";
import { isRowClick } from "./row-events.ts";

/** A rendered column with its index among all columns. */
export interface DrawnColumn<Row> {
  sized: SizedColumn<Row>;
  index: number;
  /** Total width of the skipped columns between this column and the previous rendered column. */
  gap: number;
}

interface TableRowProps<Row> {
  row: Row;
  index: number;
  drawn: readonly DrawnColumn<Row>[];
  height: number;
  isSelected: boolean;
  onOpen?: (row: Row, index: number) => void;
}

/** Memoized, so that scrolling renders only new rows. */
export const TableRow = memo(GridRow) as <Row>(props: TableRowProps<Row>) => React.JSX.Element;

function GridRow<Row>({ row, index, drawn, height, isSelected, onOpen }: TableRowProps<Row>) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      tabIndex={-1}
      aria-selected={isSelected || undefined}
      onClick={(event) => {
        // Ignores the click that ends a text selection.
        if (isRowClick(event) && !getSelection()?.toString()) onOpen?.(row, index);
      }}
      style={{ height, transform: `translateY(${index * height}px)` }}
      className={classes(
        "group/row absolute inset-x-0 top-0 flex border-line border-b text-table outline-none",
        isSelected ? "bg-selected" : "bg-bg hover:bg-hover",
        onOpen && "cursor-pointer",
      )}
    >
      {drawn.map(({ sized: { column, width, left, isResized }, index: at, gap }) => (
        <div
          key={column.id}
          role="cell"
          aria-colindex={at + 1}
          style={{ width, left, marginLeft: gap || undefined, flexGrow: column.grow && !isResized ? 1 : 0 }}
          className={classes(
            "flex min-w-0 shrink-0 items-center overflow-hidden px-3",
            at === 0 && FIRST_CELL,
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
