import type { MouseEvent } from "react";

/**
 * Whether a click is one on the row itself: links and buttons have a click of their own, and so has what a cell has opened. A menu or
 * a dialog is elsewhere on the page, but React tells its clicks to the cell, too.
 */
export function isOfRow({ target, currentTarget }: MouseEvent): boolean {
  const element = target as Element;
  return currentTarget.contains(element) && element.closest("a, button, input, label") === null;
}
