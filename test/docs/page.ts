import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");

/** A page of the docs, or another file of the repository. */
export const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** The blocks of code in a page that are in this language, in their order. */
export const blocksIn = (page: string, language: string): string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))].map(([, code]) => code as string);
