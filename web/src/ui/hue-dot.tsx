import type { CSSProperties } from "react";

/** The hues leave out the reds, which mean errors. */
const FIRST_HUE = 50;
const HUES = 290;

/** Hue of an agent or experiment in degrees, derived from the name (FNV-1a), so that all pages and browsers use the same hue. */
export function hueOf(name: string): number {
  let hash = 0x811c9dc5;
  for (const char of name) hash = Math.imul(hash ^ (char.codePointAt(0) as number), 0x01000193);
  // Spreads names that differ only in their last character.
  return FIRST_HUE + ((Math.imul(hash ^ (hash >>> 15), 0x9e3779b1) >>> 0) % HUES);
}

/** Sets the hue for the utilities `bg-hue` and `fill-hue`, whose lightness depends on the theme. */
export const hueStyle = (name: string) => ({ "--hue": hueOf(name) }) as CSSProperties;

/** A dot before the name of an agent or experiment. The name must be visible, because the colour alone identifies nothing. */
export const HueDot = ({ name }: { name: string }) => (
  <span
    aria-hidden
    style={hueStyle(name)}
    className="mr-1.5 inline-block size-2 shrink-0 rounded-full bg-hue align-[0.08em]"
  />
);
