/** Maximum length of text that is parsed as Markdown. Longer text is shown unformatted. */
export const MAX_CHARACTERS = 50_000;

/**
 * Maximum estimated parsing cost. Parsing a paragraph's inline marks takes quadratic time: 1,000 delimiter runs take up to 0.3 s, and 6,000
 * take 8 s.
 */
const MAX_COST = 1_000_000;
const DELIMITER_RUN = /\*+|_+|~+|!?\[|\]|`+|\n\n/g;

/** Matches 12 or more nested block quotes and lists on one line. The parser is recursive and slow for deep nesting. */
const DEEP_NESTING = /^[ \t]*(?:>[ \t]*|(?:[-+*]|\d{1,9}[.)])[ \t]+){12}/m;

/** Whether parsing the text would take too long. Text from models and users may be crafted to freeze the page. */
export function isCostly(text: string): boolean {
  if (text.length > MAX_CHARACTERS || DEEP_NESTING.test(text)) return true;
  let cost = 0;
  let runs = 0;
  for (const [run] of text.matchAll(DELIMITER_RUN)) {
    if (run === "\n\n") runs = 0;
    // The increments add up to the square of the number of delimiter runs in the paragraph.
    else cost += 2 * runs++ + 1;
    if (cost > MAX_COST) return true;
  }
  return false;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const LIST_ITEM = /^(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:/m;

/**
 * Splits text into top-level blocks that are rendered separately, so that only the last block is parsed while text is streamed. Text with
 * link or footnote definitions is not split, because definitions apply to all blocks.
 */
export function splitBlocks(text: string): string[] {
  if (DEFINITION.test(text)) return [text];
  const blocks: string[][] = [[]];
  let fence: string | undefined;
  let isAfterBlank = false;
  for (const line of text.split("\n")) {
    if (!fence && isAfterBlank && /^\S/.test(line) && !LIST_ITEM.test(line)) blocks.push([]);
    (blocks.at(-1) as string[]).push(line);
    isAfterBlank = line.trim() === "";
    const [, mark = "", info = ""] = FENCE.exec(line) ?? [];
    if (!fence) fence = mark || undefined;
    else if (mark.startsWith(fence) && info.trim() === "") fence = undefined;
  }
  return blocks.map((lines) => lines.join("\n"));
}
