import { delta, rough } from "../../../ui/format.ts";
import type { Key } from "./view.ts";

/** Whether a word says it: then the other word says how far it is. */
const isPassed = ({ isBinary }: Key, score: number): boolean => isBinary && (score === 0 || score === 1);

/** How far a score is from the baseline's: `−0.57`; nothing where it passed or failed. */
export const changeText = (key: Key, score: number, before: number): string =>
  isPassed(key, score) && isPassed(key, before) ? "" : delta(score - before, rough);
