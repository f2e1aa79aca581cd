import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * What the methods of the official clients do with this service. The values are `works`, `limit: ` with a sentence (the method works,
 * except for what the sentence says), `not offered: ` with the sentence of a 404, or `refused: ` with the sentence of a 400 or 422.
 * `node test/docs/langsmith-methods.ts` calls all methods and writes the table. The sentences of limits are written by hand and are
 * kept while the method works.
 */
export interface MethodTable {
  client: string;
  methods: Record<string, string>;
}

/** The result of a call: undefined for success, else the text of the error. */
export type CallResults = Record<string, string | undefined>;

export const TABLE_FILE = join(import.meta.dirname, "table.json");

export const readTables = (): Record<string, MethodTable> => JSON.parse(readFileSync(TABLE_FILE, "utf8"));

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

const NOT_OFFERED = / is not supported\. |^Route [A-Z]+ \S+ not found\.$/;
const DETAIL = /['"](?:detail|msg)\\?['"]: ?\\?(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')/;

/** The value of the table for a call. `fails: ` is never in the table. */
function outcomeOf(error: string | undefined, before: string | undefined): string {
  if (error === undefined) return before?.startsWith("limit: ") ? before : "works";
  const removed = /^NotImplementedError: (.*)/.exec(error)?.[1];
  if (removed) return `not offered: By the client: ${removed}`;
  const sentence = DETAIL.exec(error)?.slice(1).find(Boolean);
  const kind = sentence && NOT_OFFERED.test(sentence) ? "not offered" : /\b4(00|22)\b/.test(error) && "refused";
  return sentence && kind ? `${kind}: ${sentence.replaceAll(UUID, "{id}")}` : `fails: ${error}`;
}

export function outcomesOf(results: CallResults, { methods }: Pick<MethodTable, "methods">): Record<string, string> {
  const before = new Map(Object.entries(methods));
  return Object.fromEntries(Object.entries(results).map(([name, error]) => [name, outcomeOf(error, before.get(name))]));
}
