import type { Thread } from "../contract/records.ts";
import type { ThreadSearch } from "../contract/threads.ts";
import { isObject, type JsonObject } from "../lib/json.ts";

/** The named fields of each record; all of them when none is named. */
export const selectFields = <T extends object>(records: T[], fields: readonly string[] | undefined): Partial<T>[] =>
  fields ? records.map((record) => pick(record, fields) as Partial<T>) : records;

const pick = (record: object, fields: readonly string[]): JsonObject =>
  Object.fromEntries(
    fields.filter((field) => Object.hasOwn(record, field)).map((field) => [field, (record as JsonObject)[field]]),
  );

/** {@link selectFields} of threads, with what was extracted from them. */
export const selectThreads = (
  threads: Thread[],
  { select, extract }: Pick<ThreadSearch, "select" | "extract">,
): Partial<Thread>[] => selectFields(threads, select && extract ? [...select, "extracted"] : select);

/** Parts of a state: fields by name, single values as `values.<key>`. Takes and gives JSON text. */
export function selectState(text: string, select: readonly string[] | undefined): string {
  if (!select) return text;
  const state: unknown = JSON.parse(text);
  return JSON.stringify(
    Array.isArray(state) ? state.map((item) => selectOf(item, select)) : selectOf(state as JsonObject, select),
  );
}

function selectOf(state: JsonObject, select: readonly string[]): JsonObject {
  const keys = select.filter((name) => name.startsWith("values.")).map((name) => name.slice("values.".length));
  const selected = pick(state, select);
  if (keys.length > 0 && !("values" in selected) && isObject(state.values)) selected.values = pick(state.values, keys);
  return selected;
}

/** Page headers. Clients read only Next, which must be absent on the last page. */
export function pageHeaders(
  { limit, offset }: { limit: number; offset: number },
  found: number,
): Record<string, string> {
  const end = offset + found;
  if (found < limit) return { "X-Pagination-Total": String(end) };
  return { "X-Pagination-Total": String(end + 1), "X-Pagination-Next": String(end) };
}
