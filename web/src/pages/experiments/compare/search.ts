import * as z from "zod/mini";
import type { ComparedRowsQuery } from "../../../../../src/experiments/contract/app-comparison.ts";
import type { PreviewKeys } from "../preview.ts";

/** Ignores an invalid parameter, because a URL may be outdated or typed by hand. */
const optional = <T extends z.ZodMiniType>(schema: T) => z.catch(z.optional(schema), undefined);
const text = optional(z.coerce.string());

const range = z.object({
  in: z.string(),
  key: z.string(),
  min: z.optional(z.number()),
  max: z.optional(z.number()),
});

/** URL parameters of the comparison page. Lists of IDs and columns are comma-separated. */
const search = z.object({
  experiments: text,
  baseline: text,
  hidden: text,
  change: optional(z.enum(["better", "worse", "changed"])),
  changeKey: text,
  changeIn: text,
  ranges: optional(z.array(range)),
  /** Comma-separated IDs of experiments. Selects the examples that failed in at least one of them. */
  failed: text,
  text,
  /** Expression in the filter language. `whereIn` is the ID of the experiment to which the expression applies. */
  where: text,
  whereIn: text,
  sort: optional(z.enum(["score", "latency"])),
  sortKey: text,
  sortIn: text,
  /** Whether to sort by the difference from the baseline. */
  delta: optional(z.boolean()),
  ascending: optional(z.boolean()),
  /** Hidden columns: `input`, `expected`, `output`, `latency` or `score:{key}`. For the default, see rows/columns.ts. */
  without: text,
  dense: optional(z.boolean()),
  /** Whether each score is colored by its place between the worst and the best score of its key. */
  heat: optional(z.boolean()),
  /** ID of the example whose details are open. */
  row: text,
  against: optional(z.enum(["baseline", "expected", "nothing"])),
});
export type Search = z.infer<typeof search>;

export const readSearch = (given: Record<string, unknown>): Search => z.parse(search, given);

/** The inverse of {@link joined}. */
export const listOf = (text: string | undefined): string[] =>
  (text?.split(",").filter(Boolean) ?? []).map((part) => part.replaceAll(/%25|%2C/g, decodeURIComponent));

/** Commas in parts are encoded: lm-eval has scores such as `exact_match,strict-match`. Returns undefined for an empty list. */
export const joined = (list: readonly string[]): string | undefined =>
  list.length > 0 ? list.map((part) => part.replaceAll(/[%,]/g, encodeURIComponent)).join(",") : undefined;

/** Returns the filters and the sort order for a row request. Omits conditions on experiments that are not shown. */
export function narrowingOf(
  search: Search,
  shown: readonly string[],
  preview: PreviewKeys,
): Omit<ComparedRowsQuery, "offset" | "limit"> {
  const has = (id: string | undefined): id is string => id !== undefined && shown.includes(id);
  const { change, changeKey, changeIn, sort, sortKey, sortIn, where, whereIn = shown[0] } = search;
  const failed = listOf(search.failed).filter(has);
  return {
    session_ids: [...shown],
    preview: preview.inputs === undefined && preview.outputs === undefined ? undefined : preview,
    scores: search.ranges?.flatMap(({ in: session_id, ...rest }) => (has(session_id) ? [{ session_id, ...rest }] : [])),
    change:
      change && changeKey !== undefined && has(changeIn)
        ? { direction: change, key: changeKey, session_id: changeIn }
        : undefined,
    failed: failed.length > 0 ? failed : undefined,
    text: search.text || undefined,
    filters: where && has(whereIn) ? { [whereIn]: [where] } : undefined,
    order:
      // The baseline has no difference to sort by.
      sort && has(sortIn) && (sort === "latency" || sortKey !== undefined) && !(search.delta && sortIn === shown[0])
        ? { by: sort, key: sortKey, session_id: sortIn, delta: search.delta ?? false, descending: !search.ascending }
        : undefined,
  };
}
