import { useEffect } from "react";

/** Tells which rows are drawn, each time that others are: `from` up to, not including, `to`. */
export function useRange(from: number, to: number, tell: ((first: number, last: number) => void) | undefined): void {
  useEffect(() => {
    if (to > from) tell?.(from, to - 1);
  }, [from, to, tell]);
}
