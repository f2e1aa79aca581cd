import type { Thread } from "../contract/records.ts";
import type { ThreadSearch } from "../contract/threads.ts";
import { pick } from "../threads/select-state.ts";

export const selectFields = <T extends object>(records: T[], fields: readonly string[] | undefined): Partial<T>[] =>
  fields ? records.map((record) => pick(record, fields) as Partial<T>) : records;

export const selectThreads = (
  threads: Thread[],
  { select, extract }: Pick<ThreadSearch, "select" | "extract">,
): Partial<Thread>[] => selectFields(threads, select && extract ? [...select, "extracted"] : select);

/** Returns the pagination headers. Clients read only Next, which must be absent on the last page. */
export function pageHeaders(
  { limit, offset }: { limit: number; offset: number },
  found: number,
): Record<string, string> {
  const end = offset + found;
  if (found < limit) return { "X-Pagination-Total": String(end) };
  return { "X-Pagination-Total": String(end + 1), "X-Pagination-Next": String(end) };
}
