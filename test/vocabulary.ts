import { globSync, readFileSync } from "node:fs";
import ts from "typescript-5";

/** A term that the project does not use, and the one that it uses instead. */
interface Banned {
  pattern: RegExp;
  instead: string;
}

/** Parts of identifiers: `taskKeeper` and `task_keeper` both have the part `keeper`. docs/glossary.md has the terms. */
const IDENTIFIER_PARTS: Record<string, string> = {
  bell: "signal",
  rung: "notified",
  keeper: "controller",
  keepers: "controllers",
  acts: "step, transition",
  deaf: "unsubscribe",
  hear: "subscribe",
  tell: "notify, publish, append",
  told: "notified, published",
  trouble: "retryable or permanent error",
  troubles: "retryable or permanent errors",
  claimant: "active_rollout",
  gone: "deleted, removed, closed",
  arriving: "asyncQueue",
  lane: "worker",
  lanes: "workers",
  hands: "workers, slots",
  alone: "isolated",
  most: "max",
  ord: "example_index",
  ords: "example_indexes",
  patience: "timeout, grace",
  hurrying: "name the condition",
  unsaid: "unset, missing",
  whoever: "caller",
  nobody: "none",
  somebody: "caller, holder",
  anew: "again",
};

const IDENTIFIERS: Banned[] = [
  { pattern: /^lookUntil$|^look_until$/, instead: "pollUntil" },
  { pattern: /^makeWay$/, instead: "applyMultitaskStrategy" },
  { pattern: /^lastWords|last_words/, instead: "stderrTail" },
  { pattern: /^thread_before$/, instead: "thread_snapshot" },
  { pattern: /^sealsNothing$/, instead: "noEncryption" },
  { pattern: /^letGo|let_go/, instead: "delete, release" },
];

/** In string literals, texts of pages, comments and documents. */
const TEXTS: Banned[] = [
  {
    pattern: /\b(whoever|whomever|somebody|nobody|himself|herself)\b/i,
    instead: "caller, process, client, user: name it",
  },
  { pattern: /(?<![\w@./'"-])(he|him|his|she)(?![\w'"-])/, instead: "name the caller, process or user" },
  { pattern: /\b(tells?|told|telling)\b/i, instead: "reports, notifies, publishes, returns" },
  { pattern: /\b(hears?|heard)\b/i, instead: "receives, is notified of" },
  { pattern: /\btroubles?\b/i, instead: "retryable or permanent error" },
  { pattern: /\bclaimants?\b/i, instead: "active rollout" },
  { pattern: /\b(is|are|was|were|has) gone\b/i, instead: "was deleted, removed, closed, exited" },
  { pattern: /\blets? (it|them|him|her|go|those)\b[^.]{0,20}\bgo\b|\blet go\b/i, instead: "releases, deletes" },
  { pattern: /\banew\b/i, instead: "again, from the start" },
  { pattern: /\bone's own\b|\bof (its|their) own accord\b/i, instead: "rewrite" },
  {
    pattern: /\b(means nothing here|could be anything|in good order|the whole way|had back|last words|put right)\b/i,
    instead: "rewrite",
  },
];

export interface Finding {
  place: string;
  text: string;
  instead: string;
}

const partsOf = (name: string) =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z]+/);

function inIdentifier(name: string): string | undefined {
  for (const part of partsOf(name)) if (Object.hasOwn(IDENTIFIER_PARTS, part)) return IDENTIFIER_PARTS[part];
  return IDENTIFIERS.find(({ pattern }) => pattern.test(name))?.instead;
}

/** The function that a test calls: `it`, `it.each(rows)`, `describeInBrowser`. */
const TEST_CALL = /^(describe|it|test)(?![a-z])/;

const inText = (text: string) => TEXTS.find(({ pattern }) => pattern.test(text));

/**
 * @param file a TypeScript source
 * @param texts what is checked besides identifiers: all literals and comments, or only the titles of tests
 */
export function findInSource(file: string, texts: "all" | "titles", source = readFileSync(file, "utf8")): Finding[] {
  const kind = file.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, false, kind);
  const found: Finding[] = [];
  const report = (position: number, text: string, instead: string) => {
    found.push({ place: `${file}:${tree.getLineAndCharacterOfPosition(position).line + 1}`, text, instead });
  };
  const look = (position: number, text: string) => {
    const banned = inText(text);
    if (banned) report(position, text.trim(), banned.instead);
  };
  const visit = (node: ts.Node): void => {
    const start = node.getStart(tree);
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) {
      const instead = inIdentifier(node.text);
      if (instead) report(start, node.text, instead);
    } else if (texts === "titles" && ts.isCallExpression(node)) {
      const [title] = node.arguments;
      const isTitle = title && (ts.isStringLiteralLike(title) || ts.isTemplateExpression(title));
      if (isTitle && TEST_CALL.test(node.expression.getText(tree))) look(title.getStart(tree), title.getText(tree));
    } else if (
      texts === "all" &&
      (ts.isStringLiteralLike(node) ||
        ts.isTemplateHead(node) ||
        ts.isTemplateMiddleOrTemplateTail(node) ||
        ts.isJsxText(node))
    )
      look(start, node.text);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  if (texts === "all")
    for (const match of source.matchAll(/(?:^|\s)\/\/ .*|\/\*[\s\S]*?\*\//gm)) look(match.index, match[0]);
  return found;
}

/** @param file a Markdown document: its prose, without code */
export function findInDocument(file: string): Finding[] {
  const lines = readFileSync(file, "utf8")
    .replace(/```[\s\S]*?```/g, (code) => code.replace(/[^\n]/g, ""))
    .replace(/`[^`\n]*`/g, "")
    .split("\n");
  return lines.flatMap((line, index) => {
    const banned = inText(line);
    return banned ? [{ place: `${file}:${index + 1}`, text: line.trim(), instead: banned.instead }] : [];
  });
}

/** Prints what it finds in files or folders: `node test/vocabulary.ts src/access`. */
if (import.meta.main) {
  const findings = process.argv.slice(2).flatMap((path) => {
    const files = /\.\w+$/.test(path) ? [path] : globSync(`${path}/**/*.{ts,tsx,md}`);
    return files.flatMap((file) =>
      file.endsWith(".md") ? findInDocument(file) : findInSource(file, file.startsWith("test/") ? "titles" : "all"),
    );
  });
  for (const { place, text, instead } of findings)
    console.log(`${place}: ${text.replace(/\s+/g, " ").slice(0, 140)}  → ${instead}`);
  console.log(`${findings.length} found`);
}
