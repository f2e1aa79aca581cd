import { startTransition, useEffect, useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";

/** Number of rows that are rendered before and after the visible rows. */
const OVERSCAN_ROWS = 8;
/** Number of columns that are rendered before and after the visible columns. */
const OVERSCAN_COLUMNS = 1;

export interface TableLayout {
  rows: number;
  rowHeight: number;
  /** Left edge of each column, followed by the table's right edge. If undefined, all columns are rendered. */
  edges: readonly number[] | undefined;
  /** Total width of the sticky columns. */
  pinned: number;
}

/** Ranges of the rendered rows and columns. The ends are exclusive. */
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
 * Returns the visible rows and columns of a scroll container, with overscan. Only the container is measured. Scrolling re-renders the
 * caller only when a row or column enters or leaves the area.
 */
export function useVisibleArea(scroller: HTMLElement | null, layout: TableLayout): VisibleArea {
  const [viewport, setViewport] = useState<Viewport>({ top: 0, left: 0, height: 0, width: 0 });
  // The overscan is rendered after the first frame, which then has half as many rows.
  const [overscan, setOverscan] = useState(0);
  const isMeasured = viewport.height > 0;
  useEffect(() => {
    if (isMeasured) startTransition(() => setOverscan(OVERSCAN_ROWS));
  }, [isMeasured]);
  const visible = visibleArea(viewport, layout, overscan);
  const rendered = useRef({ layout, visible, overscan });
  rendered.current = { layout, visible, overscan };
  useLayoutEffect(() => {
    if (!scroller) return;
    const update = () => {
      const { scrollTop: top, scrollLeft: left, clientHeight: height, clientWidth: width } = scroller;
      const now = { top, left, height, width };
      const { layout, visible, overscan } = rendered.current;
      if (!isSame(visibleArea(now, layout, overscan), visible)) setViewport(now);
    };
    // Updates synchronously: otherwise the next frame would not show the new rows.
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

/** Returns the area to render, which is empty while the container has no height. */
function visibleArea(
  { top, left, height, width }: Viewport,
  { rows, rowHeight, edges, pinned }: TableLayout,
  overscan: number,
): VisibleArea {
  if (height === 0) return EMPTY;
  return {
    fromRow: Math.max(0, Math.min(Math.floor(top / rowHeight) - overscan, rows)),
    toRow: Math.min(Math.ceil((top + height) / rowHeight) + overscan, rows),
    ...(edges ? columnsBetween(edges, left + pinned, left + width) : ALL_COLUMNS),
  };
}

const ALL_COLUMNS = { fromColumn: 0, toColumn: Infinity };
const EMPTY = { fromRow: 0, toRow: 0, ...ALL_COLUMNS };

/** Returns the range of columns that overlap the given pixels, with overscan. */
function columnsBetween(edges: readonly number[], left: number, right: number) {
  const begun = edges.filter((edge) => edge <= left).length;
  const ended = edges.filter((edge) => edge < right).length;
  return { fromColumn: Math.max(0, begun - 1 - OVERSCAN_COLUMNS), toColumn: ended + OVERSCAN_COLUMNS };
}

const isSame = (a: VisibleArea, b: VisibleArea): boolean =>
  a.fromRow === b.fromRow && a.toRow === b.toRow && a.fromColumn === b.fromColumn && a.toColumn === b.toColumn;
