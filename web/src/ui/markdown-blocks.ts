/** What models write of Markdown most: headings, lists, code, and what is marked within a line. All else stays text as it is. */
export type Block = { at: number } & (
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "heading"; level: number; text: string }
  | { kind: "list"; first: number | undefined; items: readonly { at: number; depth: number; text: string }[] }
);

export type Inline = { at: number } & (
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong"; parts: readonly Inline[] }
  | { kind: "emphasis"; parts: readonly Inline[] }
  | { kind: "link"; href: string; text: string }
);

// Texts come from models and from users, so all of this takes time in proportion to their length: no two parts of a pattern that
// follow each other match the same character, and what is searched for in vain is not searched for again.
const FENCE = /^\s*(```|~~~)/;
const HEADING = /^(#{1,6})\s+(\S.*)$/s;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,6})[.)])\s+(\S.*)?$/s;

/** `at` is the line that a block begins with. */
export function blocksOf(text: string): Block[] {
  const lines = text.split("\n");
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at]?.trim() === "") {
      at++;
      continue;
    }
    const { block, next } = codeAt(lines, at) ?? headingAt(lines, at) ?? listAt(lines, at) ?? textAt(lines, at);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

interface Found {
  block: Block;
  next: number;
}

function codeAt(lines: readonly string[], at: number): Found | undefined {
  const fence = lines[at]?.match(FENCE)?.[1];
  if (!fence) return undefined;
  let last = at + 1;
  // While it is being written the end is still to come.
  while (last < lines.length && lines[last]?.trim() !== fence) last++;
  return { block: { at, kind: "code", text: lines.slice(at + 1, last).join("\n") }, next: last + 1 };
}

function headingAt(lines: readonly string[], at: number): Found | undefined {
  const [, marks, marked = ""] = lines[at]?.match(HEADING) ?? [];
  const text = withoutClosingMarks(marked);
  if (!marks || !text) return undefined;
  return { block: { at, kind: "heading", level: marks.length, text }, next: at + 1 };
}

function withoutClosingMarks(heading: string): string {
  let end = heading.trimEnd().length;
  while (heading[end - 1] === "#") end--;
  return heading.slice(0, end).trimEnd();
}

function listAt(lines: readonly string[], at: number): Found | undefined {
  const [, , number] = lines[at]?.match(ITEM) ?? [];
  const items: { at: number; depth: number; text: string }[] = [];
  let next = at;
  for (; next < lines.length; next++) {
    const [, indent, , text = ""] = lines[next]?.match(ITEM) ?? [];
    if (indent === undefined) break;
    items.push({ at: next, depth: Math.min(Math.floor(indent.length / 2), 2), text });
  }
  if (items.length === 0) return undefined;
  return { block: { at, kind: "list", first: number === undefined ? undefined : Number(number), items }, next };
}

/** A paragraph: up to an empty line or whatever else begins. */
function textAt(lines: readonly string[], at: number): Found {
  const ends = (line: string) => line.trim() === "" || [FENCE, HEADING, ITEM].some((begin) => begin.test(line));
  let last = at + 1;
  while (last < lines.length && !ends(lines[last] ?? "")) last++;
  return { block: { at, kind: "text", text: lines.slice(at, last).join("\n") }, next: last };
}

/** Links lead to the web alone: the text comes from a model. */
const MARKED =
  /`([^`\n]+)`|\*\*(?=\S)([^\n]+?)\*\*|\*(?=[^\s*])([^*\n]+)\*|\[([^[\]\n]+)\]\((https?:\/\/(?:[^\s()]|\([^\s()]*\))+)\)/g;

/** `at` is the place in the text. */
export function inlinesOf(text: string): Inline[] {
  if (!/[`*[]/.test(text)) return text === "" ? [] : [{ at: 0, kind: "text", text }];
  const parts: Inline[] = [];
  let done = 0;
  const plainTo = (end: number) => {
    if (end > done) parts.push({ at: done, kind: "text", text: text.slice(done, end) });
  };
  for (const match of text.matchAll(MARKED)) {
    const at = match.index;
    const [all, code, strong, emphasis, label, href] = match;
    plainTo(at);
    done = at + all.length;
    if (code !== undefined) parts.push({ at, kind: "code", text: code });
    else if (strong !== undefined) parts.push({ at, kind: "strong", parts: inlinesOf(strong) });
    else if (emphasis !== undefined) parts.push({ at, kind: "emphasis", parts: inlinesOf(emphasis) });
    else if (label !== undefined && href !== undefined) parts.push({ at, kind: "link", href, text: label });
  }
  plainTo(text.length);
  return parts;
}
