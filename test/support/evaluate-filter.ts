import {
  type Condition,
  type EntryCondition,
  type EntryField,
  type RunField,
  type RunFilter,
  type Scalar,
  spellingsOf,
  THREAD_KEYS,
} from "../../src/experiments/storage/run-filter.ts";

/** The input of {@link matches}. `latency` is in seconds, times are in microseconds since the epoch. */
export interface FilterableRun {
  /** In lower case with dashes, as is `reference_example`. */
  id: string;
  name: string;
  status: string;
  error: string | null;
  latency: number | null;
  start_time: number;
  end_time: number | null;
  run_type: string;
  tags: string[];
  is_root: boolean;
  reference_example: string | null;
  metadata: Record<string, unknown>;
  feedback: { key: string; score: number | null; value: unknown }[];
  /** The searched text. Called at most once, by the first search. */
  text: () => string;
}

/** Evaluates a filter as specified at {@link RunFilter}: the reference for the compiler to SQL. */
export function matches(filter: RunFilter, run: FilterableRun): boolean {
  let text: string | undefined;
  return holds(filter, run, () => {
    text ??= run.text().toLowerCase();
    return text;
  });
}

function holds(filter: RunFilter, run: FilterableRun, text: () => string): boolean {
  switch (filter.op) {
    case "and":
      return filter.of.every((one) => holds(one, run, text));
    case "or":
      return filter.of.some((one) => holds(one, run, text));
    case "not":
      return !holds(filter.of, run, text);
    case "has":
      return run.tags.includes(filter.value);
    case "search":
      return filter.words.every((word) => spellingsOf(word).some((spelling) => text().includes(spelling)));
    case "feedback":
      return run.feedback.some(({ key, score, value }) =>
        entryMatches(filter.where, { feedback_key: key, feedback_score: score, feedback_value: value }),
      );
    case "metadata":
      return Object.entries(run.metadata).some(([key, value]) =>
        entryMatches(filter.where, { metadata_key: key, metadata_value: value }),
      );
    case "thread":
      return THREAD_KEYS.some((key) => filter.ids.some((id) => run.metadata[key] === id));
    default:
      return conditionMatches(filter, fieldValue(run, filter.field));
  }
}

function entryMatches<F extends EntryField>(where: EntryCondition<F>[], entry: Record<F, unknown>): boolean {
  return where.every((condition) =>
    condition.op === "or"
      ? condition.of.some((one) => conditionMatches(one, entry[one.field]))
      : conditionMatches(condition, entry[condition.field]),
  );
}

function fieldValue(run: FilterableRun, field: RunField): unknown {
  if (field === "tags") return run.tags.length > 0 ? run.tags : null;
  return (run as Partial<Record<RunField, unknown>>)[field];
}

function conditionMatches(condition: Condition<string>, found: unknown): boolean {
  const value = found ?? null;
  switch (condition.op) {
    case "exists":
      return value !== null;
    case "in":
      return condition.values.some((one) => one === value);
    case "eq":
      return value === condition.value;
    case "neq":
      return condition.value === null ? value !== null : value !== null && value !== condition.value;
    default:
      return inOrder(condition.op, value, condition.value);
  }
}

function inOrder(op: "gt" | "gte" | "lt" | "lte", left: unknown, right: Scalar): boolean {
  if (typeof left !== "number" || typeof right !== "number") return false;
  switch (op) {
    case "gt":
      return left > right;
    case "gte":
      return left >= right;
    case "lt":
      return left < right;
    case "lte":
      return left <= right;
  }
}
