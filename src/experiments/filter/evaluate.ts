import {
  type Condition,
  type EntryCondition,
  type EntryField,
  type Filter,
  type RunField,
  type Scalar,
  spellingsOf,
} from "./filter.ts";

/** A run as a filter sees it. `latency` is in seconds, times are microseconds since the epoch. */
export interface FilterableRun {
  /** In lower case with dashes, and so `reference_example`. */
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
  /** What a search goes through. Asked for once, and only when a search comes to it. */
  text: () => string;
}

/**
 * Whether a run is one that the filter asks for.
 *
 * - A condition holds or does not; nothing is unknown as in SQL. So `not` turns every answer around: a run without an
 *   error is not `eq(error, "x")`, hence it is `not(eq(error, "x"))`.
 * - Null is equal to null alone, and null compared with anything else does not hold, not even with `neq`. In `metadata`
 *   and in a feedback's value, a number is never equal to a text, and only numbers have an order.
 * - `feedback` and `metadata` hold when there is a feedback, or an entry, for which all of `where` holds.
 * - `exists` holds for all but null and a run without tags; `in` with an empty list for nothing.
 * - `search` ignores case, as JavaScript's `toLowerCase` does, finds parts of words, and finds them as JSON writes them, too.
 *
 * Texts are compared exactly.
 */
export function matches(filter: Filter, run: FilterableRun): boolean {
  let text: string | undefined;
  return holds(filter, run, () => {
    text ??= run.text().toLowerCase();
    return text;
  });
}

function holds(filter: Filter, run: FilterableRun, text: () => string): boolean {
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
        fits(filter.where, { feedback_key: key, feedback_score: score, feedback_value: value }),
      );
    case "metadata":
      return Object.entries(run.metadata).some(([key, value]) =>
        fits(filter.where, { metadata_key: key, metadata_value: value }),
      );
    default:
      return holdsFor(filter, valueIn(run, filter.field));
  }
}

function fits<F extends EntryField>(where: EntryCondition<F>[], entry: Record<F, unknown>): boolean {
  return where.every((condition) =>
    condition.op === "or"
      ? condition.of.some((one) => holdsFor(one, entry[one.field]))
      : holdsFor(condition, entry[condition.field]),
  );
}

function valueIn(run: FilterableRun, field: RunField): unknown {
  if (field !== "tags") return run[field];
  return run.tags.length > 0 ? run.tags : null;
}

function holdsFor(condition: Condition<string>, found: unknown): boolean {
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
