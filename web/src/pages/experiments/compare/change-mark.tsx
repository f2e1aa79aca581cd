import type { ReactNode } from "react";
import { classes } from "../../../ui/layout.tsx";

/**
 * A change for the better (▲, blue) or for the worse (▼, orange).
 *
 * @param sign 1 for better, -1 for worse, 0 for no change
 * @param isInsignificant shows the change in grey, because the difference is not significant
 * @param isTextual the children already contain the word "better" or "worse"
 */
export function ChangeMark({
  sign,
  isInsignificant,
  isTextual,
  children,
}: {
  sign: number;
  isInsignificant?: boolean;
  isTextual?: boolean;
  children?: ReactNode;
}) {
  const word = sign > 0 ? "better" : sign < 0 ? "worse" : "unchanged";
  return (
    <span
      className={classes(
        "inline-flex items-center gap-1 whitespace-nowrap",
        sign === 0 || isInsignificant ? "text-text-3" : sign > 0 ? "text-better" : "text-worse",
      )}
    >
      {sign !== 0 && <span aria-hidden>{sign > 0 ? "▲" : "▼"}</span>}
      {!isTextual && <span className="sr-only">{word}</span>}
      {children}
    </span>
  );
}

/** A change of a value for which lower is better. It is grey, because it is not tested for significance. */
export const UntestedChange = ({ difference, children }: { difference: number; children: string }) => (
  <span title="Not tested for significance">
    <ChangeMark sign={-Math.sign(difference)} isInsignificant>
      {children}
    </ChangeMark>
  </span>
);
