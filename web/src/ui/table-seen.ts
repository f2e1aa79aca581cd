import { useLayoutEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";

/** Rows that are drawn before and after those that are seen. */
const MORE_ROWS = 8;
/** The same of columns. */
const MORE_COLUMNS = 1;

/** How a table is laid out, in pixels. */
export interface Shape {
  rows: number;
  rowHeight: number;
  /** Where each column begins, and at last where the table ends; undefined where nobody knows, and all are drawn. */
  edges: readonly number[] | undefined;
  /** The width of the columns that stay at the left, over the others. */
  pinned: number;
}

/** What is drawn: the rows and columns from one place up to, not including, another. */
export interface Seen {
  fromRow: number;
  toRow: number;
  fromColumn: number;
  toColumn: number;
}

/** The part of the table that the scroller shows. */
interface Box {
  top: number;
  left: number;
  height: number;
  width: number;
}

/**
 * The rows and columns that are seen in a scroller, and some around them. Sizes are known, nothing is measured but the scroller
 * itself; while it scrolls, whoever uses this is drawn again only when another row or column comes.
 */
export function useSeen(scroller: HTMLElement | null, shape: Shape): Seen {
  const [box, setBox] = useState<Box>({ top: 0, left: 0, height: 0, width: 0 });
  const seen = seenOf(box, shape);
  const drawn = useRef({ shape, seen });
  drawn.current = { shape, seen };
  useLayoutEffect(() => {
    if (!scroller) return;
    const look = () => {
      const { scrollTop: top, scrollLeft: left, clientHeight: height, clientWidth: width } = scroller;
      const now = { top, left, height, width };
      if (!isSame(seenOf(now, drawn.current.shape), drawn.current.seen)) setBox(now);
    };
    // At once, or else a frame would be without the rows that come.
    const lookAtOnce = () => flushSync(look);
    const observer = new ResizeObserver(look);
    observer.observe(scroller);
    scroller.addEventListener("scroll", lookAtOnce, { passive: true });
    look();
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", lookAtOnce);
    };
  }, [scroller]);
  return seen;
}

/** Nothing as long as the scroller has no height. */
function seenOf({ top, left, height, width }: Box, { rows, rowHeight, edges, pinned }: Shape): Seen {
  if (height === 0) return NOTHING;
  return {
    fromRow: Math.max(0, Math.min(Math.floor(top / rowHeight) - MORE_ROWS, rows)),
    toRow: Math.min(Math.ceil((top + height) / rowHeight) + MORE_ROWS, rows),
    ...(edges ? columnsBetween(edges, left + pinned, left + width) : ALL_COLUMNS),
  };
}

const ALL_COLUMNS = { fromColumn: 0, toColumn: Infinity };
const NOTHING = { fromRow: 0, toRow: 0, ...ALL_COLUMNS };

/** Those of which some is within these pixels, and some more. */
function columnsBetween(edges: readonly number[], left: number, right: number) {
  const begun = edges.filter((edge) => edge <= left).length;
  const ended = edges.filter((edge) => edge < right).length;
  return { fromColumn: Math.max(0, begun - 1 - MORE_COLUMNS), toColumn: ended + MORE_COLUMNS };
}

const isSame = (a: Seen, b: Seen): boolean =>
  a.fromRow === b.fromRow && a.toRow === b.toRow && a.fromColumn === b.fromColumn && a.toColumn === b.toColumn;
