import { ArrowDown, ArrowUp } from "lucide-react";
import type { KeyboardEvent } from "react";
import { classes } from "../layout.tsx";
import type { SizedColumn, Sort } from "./columns.ts";

const STEP_PX = 16;

/** In a table as wide as the page, the first column begins where the page's title begins. */
export const FIRST_CELL = "pl-(--table-start,12px)";

/** Sticky header of a table. A click sorts by the column, and dragging a column's right edge resizes the column. */
export function TableHead<Row>({
  sized,
  sort,
  onSort,
  height = 32,
}: {
  height?: 32 | 56;
  sized: readonly SizedColumn<Row>[];
  sort?: Sort;
  onSort?: (sort: Sort) => void;
}) {
  return (
    <div
      role="row"
      aria-rowindex={1}
      tabIndex={-1}
      style={{ height }}
      className="sticky top-0 z-10 flex border-line border-b bg-sunken font-medium text-table text-text-2"
    >
      {sized.map(({ column, width, left, resize, widen, isResized }, index) => {
        const direction =
          column.sort && sort?.by === column.sort ? (sort.descending ? "descending" : "ascending") : undefined;
        return (
          <div
            key={column.id}
            role="columnheader"
            aria-colindex={index + 1}
            tabIndex={-1}
            aria-sort={direction}
            style={{ width, left, flexGrow: column.grow && !isResized ? 1 : 0 }}
            className={classes(
              "group/head relative flex min-w-0 shrink-0 items-center px-3",
              index === 0 && FIRST_CELL,
              column.numeric && "justify-end",
              left !== undefined && "sticky z-[1] bg-sunken",
            )}
          >
            {column.sort && onSort ? (
              <button
                type="button"
                className="inline-flex min-w-0 items-center gap-1 rounded hover:text-text"
                onClick={() => onSort({ by: column.sort as string, descending: direction !== "descending" })}
              >
                <span className="truncate">{column.header}</span>
                {direction === "descending" && <ArrowDown size={12} aria-hidden />}
                {direction === "ascending" && <ArrowUp size={12} aria-hidden />}
              </button>
            ) : (
              <span className="truncate">{column.header}</span>
            )}
            <div
              role="separator"
              tabIndex={0}
              aria-orientation="vertical"
              aria-label={`Width of ${column.id}`}
              aria-valuenow={width}
              onMouseDown={resize}
              onTouchStart={resize}
              onKeyDown={(event) => onResizeKey(event, widen)}
              className="absolute inset-y-1.5 right-0 w-1 cursor-col-resize touch-none rounded bg-line-strong opacity-0 focus-visible:opacity-100 group-hover/head:opacity-100"
            />
          </div>
        );
      })}
    </div>
  );
}

function onResizeKey(event: KeyboardEvent, widen: (by: number) => void): void {
  if (event.key === "ArrowLeft") widen(-STEP_PX);
  else if (event.key === "ArrowRight") widen(STEP_PX);
  else return;
  event.preventDefault();
}
