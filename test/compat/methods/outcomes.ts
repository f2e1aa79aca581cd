import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * What the methods of the official clients do with this service. The values are `works`, `works: ` with a sentence, `limit: ` with a
 * sentence (the method works, except for what the sentence says), `not offered: ` with the sentence of a 404, or `refused: ` with the
 * sentence of a 400 or 422. The programs of {@link TABLES} call all methods and write the tables. Two kinds of sentences are written by
 * hand and kept: those of methods that work, and those of methods whose routes do not exist.
 */
export interface MethodTable {
  client: string;
  methods: Record<string, string>;
}

/** The result of a call: undefined for success, else the text of the error. */
export type CallResults = Record<string, string | undefined>;

/** The tables, and the programs that write them. */
export const TABLES = {
  langsmith: { file: "langsmith-methods/table.json", program: "test/docs/langsmith-methods.ts" },
  agent_server: { file: "agent-server-methods/table.json", program: "test/docs/agent-server-methods.ts" },
} as const;
export type TableName = keyof typeof TABLES;

export const tableFile = (name: TableName): string => join(import.meta.dirname, "..", TABLES[name].file);

export const readTables = (name: TableName): Record<string, MethodTable> =>
  JSON.parse(readFileSync(tableFile(name), "utf8"));

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

const NOT_OFFERED = / is not supported\. /;
/** The answer to a route that does not exist; httpx reports it without the body. */
const NO_ROUTE = /Route [A-Z]+ \S+ not found\.|Client error '404 Not Found' for url/;
const DETAIL = /['"](?:detail|msg)\\?['"]: ?\\?(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')/;
const REMOVED = /^NotImplementedError(?:: (.*)|$)/;

/** The value of the table for a call. `fails: ` is never in the table. */
function outcomeOf(error: string | undefined, before: string | undefined): string {
  if (error === undefined) return before && /^(works|limit): /.test(before) ? before : "works";
  const removed = REMOVED.exec(error);
  if (removed) return `not offered: By the client: ${removed[1] || "not implemented."}`;
  if (NO_ROUTE.test(error)) return before?.startsWith("not offered: ") ? before : `fails: ${error}`;
  const sentence = DETAIL.exec(error)?.slice(1).find(Boolean);
  const kind =
    sentence && NOT_OFFERED.test(sentence)
      ? "not offered"
      : /\b4(00|22)\b|^(BadRequest|UnprocessableEntity)Error/.test(error) && "refused";
  return sentence && kind ? `${kind}: ${sentence.replaceAll(UUID, "{id}").replaceAll('\\"', '"')}` : `fails: ${error}`;
}

export function outcomesOf(results: CallResults, { methods }: Pick<MethodTable, "methods">): Record<string, string> {
  const before = new Map(Object.entries(methods));
  return Object.fromEntries(Object.entries(results).map(([name, error]) => [name, outcomeOf(error, before.get(name))]));
}

/** The method of a call. Calls of options are named by their method and the option: `runs.stream (feedbackKeys)`. */
export const methodOf = (call: string): string => call.replace(/ \(.*/, "");

const LISTS = /list|query|search|history|versions/i;

/** Makes calls one after the other. A list that is empty is a failure, because what is listed exists. */
export async function callAll<Client, World>(
  calls: Record<string, (client: Client, world: World) => unknown>,
  client: Client,
  world: World,
): Promise<CallResults> {
  const results: CallResults = {};
  for (const [name, call] of Object.entries(calls)) {
    try {
      const result = await call(client, world);
      results[name] =
        LISTS.test(name) && Array.isArray(result) && result.length === 0 ? "the list is empty" : undefined;
    } catch (error) {
      results[name] = error instanceof Error ? error.message : String(error);
    }
  }
  return results;
}
