import { useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";

/** The number of rows rendered before and after the visible rows. */
const OVERSCAN_ROWS = 8;
/** The number of columns rendered before and after the visible columns. */
const OVERSCAN_COLUMNS = 1;

export interface TableLayout {
  rows: number;
  rowHeight: number;
  /** The left edge of each column, then the right edge of the table; undefined if unknown, then all columns are rendered. */
  edges: readonly number[] | undefined;
  /** The total width of the sticky columns. */
  pinned: number;
}

/** The rendered rows and columns. The ends are exclusive. */
interface VisibleArea {
  fromRow: number;
  toRow: number;
  fromColumn: number;
  toColumn: number;
}

interface Viewport {
  top: number;
  left: number;
  height: number;
  width: number;
}

/**
 * The visible rows and columns of a scroll container, with overscan. Only the container is measured. Scrolling renders the caller only
 * when a row or column enters or leaves.
 */
export function useVisibleArea(scroller: HTMLElement | null, layout: TableLayout): VisibleArea {
  const [viewport, setViewport] = useState<Viewport>({ top: 0, left: 0, height: 0, width: 0 });
  const visible = visibleArea(viewport, layout);
  const rendered = useRef({ layout, visible });
  rendered.current = { layout, visible };
  useLayoutEffect(() => {
    if (!scroller) return;
    const update = () => {
      const { scrollTop: top, scrollLeft: left, clientHeight: height, clientWidth: width } = scroller;
      const now = { top, left, height, width };
      if (!isSame(visibleArea(now, rendered.current.layout), rendered.current.visible)) setViewport(now);
    };
    // Synchronous: otherwise a frame would lack the new rows.
    const updateNow = () => flushSync(update);
    const observer = new ResizeObserver(update);
    observer.observe(scroller);
    scroller.addEventListener("scroll", updateNow, { passive: true });
    update();
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", updateNow);
    };
  }, [scroller]);
  return visible;
}

/** Returns an empty area while the container has no height. */
function visibleArea(
  { top, left, height, width }: Viewport,
  { rows, rowHeight, edges, pinned }: TableLayout,
): VisibleArea {
  if (height === 0) return EMPTY;
  return {
    fromRow: Math.max(0, Math.min(Math.floor(top / rowHeight) - OVERSCAN_ROWS, rows)),
    toRow: Math.min(Math.ceil((top + height) / rowHeight) + OVERSCAN_ROWS, rows),
    ...(edges ? columnsBetween(edges, left + pinned, left + width) : ALL_COLUMNS),
  };
}

const ALL_COLUMNS = { fromColumn: 0, toColumn: Infinity };
const EMPTY = { fromRow: 0, toRow: 0, ...ALL_COLUMNS };

/** The columns that overlap the given pixels, with overscan. */
function columnsBetween(edges: readonly number[], left: number, right: number) {
  const begun = edges.filter((edge) => edge <= left).length;
  const ended = edges.filter((edge) => edge < right).length;
  return { fromColumn: Math.max(0, begun - 1 - OVERSCAN_COLUMNS), toColumn: ended + OVERSCAN_COLUMNS };
}

const isSame = (a: VisibleArea, b: VisibleArea): boolean =>
  a.fromRow === b.fromRow && a.toRow === b.toRow && a.fromColumn === b.fromColumn && a.toColumn === b.toColumn;
