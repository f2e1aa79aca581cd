import { useVirtualizer } from "@tanstack/react-virtual";
import { Fragment, type RefObject, useLayoutEffect, useRef, useState } from "react";
import { classes } from "../layout.tsx";
import type { Column } from "./columns.ts";
import { isRowClick, useVisibleRange } from "./row-events.ts";
import type { TableProps } from "./table.tsx";

const ESTIMATE_PX = 120;

/** A table on a narrow screen, with one card per row: the title, then the columns with `card: "first"`, then the others. */
export function TableCards<Row>({
  name,
  rows,
  columns,
  keyOf,
  selected,
  onOpen,
  onEnd,
  onRange,
  className,
  scroller: outer,
}: TableProps<Row>) {
  const own = useRef<HTMLElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const scrollMargin = useOffset(list, outer);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => outer ?? own.current,
    scrollMargin,
    estimateSize: () => ESTIMATE_PX,
    getItemKey: (index) => keyOf(rows[index] as Row),
    overscan: 4,
    onChange: ({ range }) => {
      if (range && range.endIndex >= rows.length - 3) onEnd?.();
    },
  });
  const { startIndex = 0, endIndex = -1 } = virtual.range ?? {};
  useVisibleRange(startIndex, endIndex + 1, onRange);
  const title = columns.find((column) => column.card === "title") ?? columns[0];
  const order = (column: Column<Row>) => (column.card === "first" ? 0 : 1);
  const lines = columns
    .filter((column) => column !== title && column.card !== "hidden" && column.card !== "beside")
    .sort((a, b) => order(a) - order(b));
  return (
    <section
      ref={own}
      tabIndex={0}
      aria-label={name}
      className={classes("min-h-0", outer === undefined && "overflow-y-auto", className)}
    >
      <ul ref={list} className="relative" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const row = rows[index] as Row;
          return (
            <li
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              style={{ transform: `translateY(${start - scrollMargin}px)` }}
              className={classes(
                "absolute inset-x-0 top-0 border-line border-b px-4 py-2.5",
                keyOf(row) === selected && "bg-selected",
              )}
            >
              <div
                onClick={(event) => {
                  if (isRowClick(event)) onOpen?.(row, index);
                }}
              >
                {title && (
                  <div className="mb-1 flex items-center justify-between gap-2 font-medium text-body">
                    <span className="min-w-0">{title.cell(row, index)}</span>
                    <span className="flex shrink-0 items-center gap-2">
                      {columns.map(
                        (column) =>
                          column.card === "beside" && <Fragment key={column.id}>{column.cell(row, index)}</Fragment>,
                      )}
                    </span>
                  </div>
                )}
                <dl className="grid grid-cols-[fit-content(40%)_minmax(0,1fr)] gap-x-4 gap-y-0.5 text-table">
                  {lines.map((column) => (
                    <div key={column.id} className="contents">
                      <dt className="text-text-3 [overflow-wrap:anywhere]">{column.header}</dt>
                      <dd className={classes("min-w-0 truncate", column.numeric && "font-mono")}>
                        {column.cell(row, index)}
                      </dd>
                    </div>
                  ))}
                </dl>
              </div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** Distance of an element from the beginning of what its scroller scrolls, in pixels. 0 without a scroller. */
function useOffset(element: RefObject<HTMLElement | null>, scroller: HTMLElement | null | undefined): number {
  const [offset, setOffset] = useState(0);
  useLayoutEffect(() => {
    const content = scroller?.firstElementChild;
    if (!scroller || !content) return;
    const observer = new ResizeObserver(() => {
      const top = element.current?.getBoundingClientRect().top ?? 0;
      setOffset(top - scroller.getBoundingClientRect().top + scroller.scrollTop);
    });
    observer.observe(content);
    return () => observer.disconnect();
  }, [element, scroller]);
  return offset;
}
