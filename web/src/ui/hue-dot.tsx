import type { CSSProperties } from "react";

/** The hues leave out the reds, which mean errors, and are far enough apart to be distinguished. */
const FIRST_HUE = 50;
const HUE_STEP = 24;
const HUES = 12;

/** Names with the same hue differ in shape, also for people who cannot distinguish colours. */
const SHAPES = [
  "rounded-full bg-hue",
  "rounded-[1px] bg-hue",
  "rotate-45 rounded-[1px] bg-hue",
  "rounded-full border-2 border-hue",
];

/** A number derived from the name (FNV-1a), so that all pages and browsers show the same hue and shape. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (const char of name) hash = Math.imul(hash ^ (char.codePointAt(0) as number), 0x01000193);
  // Spreads names that differ only in their last character.
  return Math.imul(hash ^ (hash >>> 15), 0x9e3779b1) >>> 0;
}

/** Hue of an agent or experiment in degrees. */
export const hueOf = (name: string): number => FIRST_HUE + (hashOf(name) % HUES) * HUE_STEP;

/** Sets the hue for the utilities `bg-hue`, `border-hue` and `fill-hue`, whose lightness depends on the theme. */
export const hueStyle = (name: string) => ({ "--hue": hueOf(name) }) as CSSProperties;

/** A mark before the name of an agent or experiment. The name must be visible, because the colour alone identifies nothing. */
export const HueDot = ({ name }: { name: string }) => (
  <span
    aria-hidden
    style={hueStyle(name)}
    className={`mr-1.5 inline-block size-2 shrink-0 align-[0.08em] ${SHAPES[Math.floor(hashOf(name) / HUES) % SHAPES.length]}`}
  />
);
