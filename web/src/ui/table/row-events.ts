import type { MouseEvent } from "react";
import { useEffect } from "react";

/**
 * Whether a click is on the row itself, not on a link, a button or an input in the row. React also bubbles clicks from a menu or dialog
 * that a cell has opened, although those elements are elsewhere in the document.
 */
export function isRowClick({ target, currentTarget }: MouseEvent): boolean {
  const element = target as Element;
  return currentTarget.contains(element) && element.closest("a, button, input, label") === null;
}

/** Reports the range of rendered rows when the range changes. `to` is exclusive. */
export function useVisibleRange(
  from: number,
  to: number,
  onRange: ((first: number, last: number) => void) | undefined,
): void {
  useEffect(() => {
    if (to > from) onRange?.(from, to - 1);
  }, [from, to, onRange]);
}
