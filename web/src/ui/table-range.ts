import { useEffect } from "react";

/** Tells which rows are drawn, each time that others are. */
export function useRange(
  range: { startIndex: number; endIndex: number } | null,
  tell: ((first: number, last: number) => void) | undefined,
): void {
  const { startIndex, endIndex } = range ?? {};
  useEffect(() => {
    if (startIndex !== undefined && endIndex !== undefined) tell?.(startIndex, endIndex);
  }, [startIndex, endIndex, tell]);
}
