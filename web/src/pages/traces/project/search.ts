import { textOf } from "../../../page.ts";

/** The filters and the sort order of a project's runs, as stored in the URL. */
export interface ProjectSearch {
  /** Words in the name, error, metadata, inputs or outputs. */
  q?: string;
  status?: RunState;
  /** Type of the runs to list, or `all`. Default: only the roots of traces. */
  type?: string;
  name?: string;
  tag?: string;
  /** `key` or `key=value`. */
  metadata?: string;
  /** Minimum latency in seconds. */
  latency?: number;
  /** Minimum number of tokens. */
  tokens?: number;
  thread?: string;
  /** Column name, with a leading `-` for descending order. */
  sort?: string;
}

export const STATES = ["success", "error", "pending"] as const;
export type RunState = (typeof STATES)[number];

const minimumOf = (value: unknown): number | undefined => {
  const number = value === undefined || value === "" ? Number.NaN : Number(value);
  return number > 0 && Number.isFinite(number) ? number : undefined;
};

export const projectSearch = (search: Record<string, unknown>): ProjectSearch => ({
  q: textOf(search.q),
  status: STATES.find((state) => state === search.status),
  type: textOf(search.type),
  name: textOf(search.name),
  tag: textOf(search.tag),
  metadata: textOf(search.metadata),
  latency: minimumOf(search.latency),
  tokens: minimumOf(search.tokens),
  thread: textOf(search.thread),
  sort: textOf(search.sort),
});

/** Converts the filters to the parameters of `/app/api/traces/query` and `/runs/stats`. */
export function conditionsOf(search: ProjectSearch): { is_root?: boolean; filter?: string; query?: string } {
  const { q, status, type, name, tag, metadata, latency, tokens, thread } = search;
  // The filter language uses JSON string escapes.
  const text = (value: string) => JSON.stringify(value);
  const parts = [
    status && `eq(status, ${text(status)})`,
    type && type !== "all" && `eq(run_type, ${text(type)})`,
    name && `eq(name, ${text(name)})`,
    tag && `has(tags, ${text(tag)})`,
    metadata && metadataFilter(metadata, text),
    latency && `gte(latency, ${latency})`,
    tokens && `gte(total_tokens, ${tokens})`,
    thread && `eq(thread_id, ${text(thread)})`,
  ].filter(Boolean);
  return {
    ...(type === undefined && { is_root: true }),
    ...(parts.length > 0 &&
      ({ filter: parts.length === 1 ? parts[0] : `and(${parts.join(", ")})` } as { filter: string })),
    ...(q && { query: q }),
  };
}

/** Builds a metadata filter. A value such as `5` or `true` matches the string and the number or boolean. */
function metadataFilter(given: string, text: (value: string) => string): string {
  const at = given.indexOf("=");
  const key = (at < 0 ? given : given.slice(0, at)).trim();
  if (at < 0) return `eq(metadata_key, ${text(key)})`;
  const value = given.slice(at + 1).trim();
  const literals = [text(value), ...(/^(true|false|-?\d+(\.\d+)?)$/.test(value) ? [value] : [])];
  const values = literals.map((literal) => `eq(metadata_value, ${literal})`);
  return `and(eq(metadata_key, ${text(key)}), ${values.length > 1 ? `or(${values.join(", ")})` : values[0]})`;
}

export const isFiltered = ({ sort: _, ...filters }: ProjectSearch): boolean =>
  Object.values(filters).some((value) => value !== undefined);
