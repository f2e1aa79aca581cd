/**
 * A filter of runs, as it is read from an expression such as `and(eq(status, "error"), gt(latency, "5s"))`. All is resolved that
 * an expression leaves implicit: values have the type of their field, and what is said about one feedback stands
 * together. What a filter means is said at `matches`; a compiler to SQL must mean the same.
 */
export type RunFilter =
  | { op: "and" | "or"; of: RunFilter[] }
  | { op: "not"; of: RunFilter }
  | Condition<RunField>
  | { op: "has"; field: "tags"; value: string }
  /** Every word occurs somewhere in the run's text. Words are in lower case, and at least one. */
  | { op: "search"; words: string[] }
  | EntryFilter;

/**
 * How a word may stand in a text: as it is, and as JSON writes it, because inputs, outputs and metadata are searched as the
 * JSON that is stored. `say "hi"` stands there as `say \"hi\"`.
 */
export function spellingsOf(word: string): string[] {
  const escaped = JSON.stringify(word).slice(1, -1);
  return escaped === word ? [word] : [word, escaped];
}

/** There is a feedback (an entry of the run's metadata) for which every condition holds. At least one condition. */
export type EntryFilter =
  | { op: "feedback"; where: EntryCondition<FeedbackField>[] }
  | { op: "metadata"; where: EntryCondition<MetadataField>[] };

/** `or`: at least one of them holds for the same feedback (the same entry of the metadata). */
export type EntryCondition<Field extends EntryField> = Condition<Field> | { op: "or"; of: Condition<Field>[] };

/** Says something about one field. In `in`, the list may be empty, and holds no null. */
export type Condition<Field extends string> =
  | { op: Comparator; field: Field; value: Scalar }
  | { op: "in"; field: Field; values: Scalar[] }
  | { op: "exists"; field: Field };

export type Comparator = "eq" | "neq" | Order;

export type Order = "gt" | "gte" | "lt" | "lte";

/**
 * `latency` is in seconds, `start_time` and `end_time` in microseconds since the epoch, `id` and `reference_example` are
 * UUIDs in lower case with dashes. Null, where a field may be null, stands beside `eq` and `neq` only.
 */
export type RunField =
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
