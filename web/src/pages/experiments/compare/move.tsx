import type { ReactNode } from "react";
import { classes } from "../../../ui/classes.ts";

/**
 * A change for the better (▲, blue) or for the worse (▼, orange); the sign before the number says where to.
 *
 * @param sign 1 better, -1 worse, 0 neither
 * @param isChance it may be nothing but chance, and is grey
 * @param isSaid the word is in the text already
 */
export function Move({
  sign,
  isChance,
  isSaid,
  children,
}: {
  sign: number;
  isChance?: boolean;
  isSaid?: boolean;
  children?: ReactNode;
}) {
  const word = sign > 0 ? "better" : sign < 0 ? "worse" : "unchanged";
  return (
    <span
      className={classes(
        "inline-flex items-center gap-1 whitespace-nowrap",
        sign === 0 || isChance ? "text-text-3" : sign > 0 ? "text-better" : "text-worse",
      )}
    >
      {sign !== 0 && <span aria-hidden>{sign > 0 ? "▲" : "▼"}</span>}
      {!isSaid && <span className="sr-only">{word}</span>}
      {children}
    </span>
  );
}
