import type {
  Condition,
  EntryCondition,
  EntryField,
  EntryFilter,
  FeedbackField,
  MetadataField,
  RunField,
  RunFilter,
} from "../storage/run-filter.ts";
import { FilterError } from "./filter-reader.ts";

/** A parsed expression before grouping. An `entry` is a condition on a field of a feedback row or of a metadata entry. */
export type ParsedExpression =
  | { op: "and" | "or"; at: number; of: ParsedExpression[] }
  | { op: "not"; at: number; of: ParsedExpression }
  | { op: "plain"; at: number; filter: RunFilter }
  | { op: "entry"; at: number; kind: EntryKind; condition: Condition<EntryField> };

type EntryKind = EntryFilter["op"];

export function toExpression(at: number, condition: Condition<RunField | EntryField>): ParsedExpression {
  const kind = kindOf(condition.field);
  return kind
    ? { op: "entry", at, kind, condition: condition as Condition<EntryField> }
    : { op: "plain", at, filter: condition as Condition<RunField> };
}

function kindOf(field: RunField | EntryField): EntryKind | undefined {
  if (field.startsWith("feedback_")) return "feedback";
  return field.startsWith("metadata_") ? "metadata" : undefined;
}

/**
 * Groups the conditions on the same feedback row, and on the same metadata entry:
 *
 * - The conditions of one `and(...)` apply to the same row; with several keys and no value, each applies to any row. An `or(...)`
 *   among them also applies to the same row if all of its conditions are on the key, or none of them is.
 * - Any other condition (alone, in an `or` or a `not`, in a nested `and`) applies to any row.
 * - `neq` on a key, and `neq` on a value without a key, match when no such row exists:
 *   `and(neq(metadata_key, "k"), eq(metadata_value, "v"))` finds runs without the key `k` that have the value `v`.
 *
 * The last rule is from "Negative filtering on key-value pairs" in the official guide to querying traces, the first is from its
 * examples, and the rule for `or` is an extension.
 *
 * @throws FilterError when one `and` has two keys and a value: the value could belong to either key
 */
export function groupEntries(parsed: ParsedExpression): RunFilter {
  switch (parsed.op) {
    case "and":
      return { op: "and", of: groupOperands(parsed.of) };
    case "or":
      return { op: "or", of: parsed.of.map(groupEntries) };
    case "not":
      return { op: "not", of: groupEntries(parsed.of) };
    case "plain":
      return parsed.filter;
    case "entry":
      return isNegated(parsed.condition) ? toNegation(parsed) : entryFilter(parsed.kind, [parsed.condition]);
  }
}

function groupOperands(operands: ParsedExpression[]): RunFilter[] {
  const groups = [groupMembers(operands, "feedback"), groupMembers(operands, "metadata")].filter(
    (group) => group.length > 1,
  );
  return operands.flatMap((operand) => {
    const group = groups.find((members) => members.some((member) => member.operand === operand));
    if (!group) return [groupEntries(operand)];
    const [first] = group as [Member];
    // The filter of the group replaces its first condition; its other conditions are removed.
    if (operand !== first.operand) return [];
    const conditions = group.map(({ condition }) => condition);
    return [entryFilter(first.kind, conditions)];
  });
}

interface Member {
  operand: ParsedExpression;
  kind: EntryKind;
  condition: EntryCondition<EntryField>;
  is_key: boolean;
  is_negated: boolean;
}

/** The operands of an `and` that apply to the same feedback row or metadata entry. */
function groupMembers(operands: ParsedExpression[], kind: EntryKind): Member[] {
  const members = operands.flatMap((operand) => memberOf(operand, kind) ?? []);
  const keys = members.filter(({ is_key, is_negated }) => is_key && !is_negated);
  const values = members.filter(({ is_key }) => !is_key);
  const second = keys[1];
  if (second && values.length > 0) {
    throw new FilterError(
      second.operand.at,
      `a second ${kind}_key in the same and(...) makes it unclear which key the value belongs to; use a separate and(...) for each key.`,
    );
  }
  if (second) return [];
  return members.filter(({ is_key, is_negated }) => !is_negated || (!is_key && keys.length === 1));
}

function memberOf(operand: ParsedExpression, kind: EntryKind): Member | undefined {
  if (operand.op === "entry" && operand.kind === kind) {
    const { condition } = operand;
    return { operand, kind, condition, is_key: isKey(condition), is_negated: isNegated(condition) };
  }
  if (operand.op !== "or") return undefined;
  const of = operand.of.flatMap((alternative) =>
    alternative.op === "entry" && alternative.kind === kind ? [alternative.condition] : [],
  );
  const is_key = of.every(isKey);
  const is_negated = of.some(isNegated);
  // An `or` is not grouped if it contains other conditions, mixes keys with other fields of the entry, or negates a key.
  if (of.length < operand.of.length || (is_key ? is_negated : of.some(isKey))) return undefined;
  return { operand, kind, condition: { op: "or", of }, is_key, is_negated };
}

const isKey = ({ field }: Condition<EntryField>) => field === "feedback_key" || field === "metadata_key";

/** `neq` with null is not a negation: it matches existing values. */
const isNegated = (condition: Condition<EntryField>) => condition.op === "neq" && condition.value !== null;

function toNegation({ kind, condition }: ParsedExpression & { op: "entry" }): RunFilter {
  return { op: "not", of: entryFilter(kind, [{ ...condition, op: "eq" } as Condition<EntryField>]) };
}

function entryFilter(kind: EntryKind, where: EntryCondition<EntryField>[]): EntryFilter {
  return kind === "feedback"
    ? { op: kind, where: where as EntryCondition<FeedbackField>[] }
    : { op: kind, where: where as EntryCondition<MetadataField>[] };
}
