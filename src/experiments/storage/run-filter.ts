/**
 * A parsed filter expression. Values have the type of their field, and the conditions on one feedback row are grouped.
 *
 * - A condition is true or false, never null as in SQL: a run without an error matches `not(eq(error, "x"))`.
 * - Null equals null only. For a null field, comparisons with other values are false, including `neq`. In `metadata` and feedback values,
 *   numbers never equal strings, and only numbers have an order.
 * - `feedback` and `metadata` match when one feedback row, or one entry, meets all conditions of `where`.
 * - `exists` is false only for null and for a run without tags. `in` with an empty list is false.
 * - `search` ignores case as `toLowerCase` in JavaScript does, and finds parts of words.
 * - Other comparisons of strings are exact.
 */
export type RunFilter =
  | { op: "and" | "or"; of: RunFilter[] }
  | { op: "not"; of: RunFilter }
  | Condition<RunField>
  | { op: "has"; field: "tags"; value: string }
  /** The run is in one of these threads. An uploaded run is in the threads that its metadata names. */
  | { op: "thread"; ids: string[] }
  /** Every word occurs in a text of the run. There is at least one word, in lower case. */
  | { op: "search"; words: string[] }
  | EntryFilter;

/** The word with and without JSON escapes: inputs, outputs and metadata are stored as JSON, where `say "hi"` is `say \"hi\"`. */
export function spellingsOf(word: string): string[] {
  const escaped = JSON.stringify(word).slice(1, -1);
  return escaped === word ? [word] : [word, escaped];
}

/** The keys of metadata that name the thread of a run, in LangSmith's order of precedence. */
export const THREAD_KEYS = ["session_id", "thread_id", "conversation_id"];

/** One feedback row, or one entry of the metadata, meets every condition. There is at least one condition. */
export type EntryFilter =
  | { op: "feedback"; where: EntryCondition<FeedbackField>[] }
  | { op: "metadata"; where: EntryCondition<MetadataField>[] };

/** `or`: the same feedback row, or the same entry of the metadata, meets at least one condition. */
export type EntryCondition<Field extends EntryField> = Condition<Field> | { op: "or"; of: Condition<Field>[] };

/** A condition on one field. The list of `in` may be empty and contains no null. */
export type Condition<Field extends string> =
  | { op: Comparator; field: Field; value: Scalar }
  | { op: "in"; field: Field; values: Scalar[] }
  | { op: "exists"; field: Field };

export type Comparator = "eq" | "neq" | Order;

export type Order = "gt" | "gte" | "lt" | "lte";

/**
 * `latency` is in seconds. Times are in microseconds since the epoch. The ids of runs, traces and examples are
 * UUIDs in lower case with dashes. Null occurs with `eq` and `neq` of nullable fields only.
 */
export type RunField =
  | "trace_id"
  | "parent_run_id"
  | "first_token_time"
  | "total_tokens"
  | "prompt_tokens"
  | "completion_tokens"
  | "total_cost"
  | "id"
  | "name"
  | "status"
  | "error"
  | "latency"
  | "start_time"
  | "end_time"
  | "run_type"
  | "tags"
  | "is_root"
  | "reference_example";

export type FeedbackField = "feedback_key" | "feedback_score" | "feedback_value";

export type MetadataField = "metadata_key" | "metadata_value";

export type EntryField = FeedbackField | MetadataField;

export type Scalar = string | number | boolean | null;
