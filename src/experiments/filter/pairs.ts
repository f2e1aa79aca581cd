import type {
  Condition,
  EntryCondition,
  EntryField,
  EntryFilter,
  FeedbackField,
  Filter,
  MetadataField,
  RunField,
} from "./filter.ts";
import { FilterError } from "./filter-error.ts";

/**
 * An expression as it was written. An `entry` is a condition on one field of a feedback or of the metadata: which other
 * conditions mean the same feedback is not decided yet. `at` is the position of the call.
 */
export type Parsed =
  | { op: "and" | "or"; at: number; of: Parsed[] }
  | { op: "not"; at: number; of: Parsed }
  | { op: "plain"; at: number; filter: Filter }
  | { op: "entry"; at: number; kind: EntryKind; condition: Condition<EntryField> };

type EntryKind = EntryFilter["op"];

export function conditionOn(at: number, condition: Condition<RunField | EntryField>): Parsed {
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
 * Puts together what is said about the same feedback, and about the same entry of the metadata:
 *
 * - The conditions that stand side by side in one `and(...)` mean the same one, and so does an `or(...)` among them that
 *   is of conditions on its key only, or on its score and value only.
 * - A condition elsewhere (alone, in an `or` or a `not`, in an `and` within) speaks of any.
 * - `neq` on a key, and `neq` on a value beside no key, deny that there is one:
 *   `and(neq(metadata_key, "k"), eq(metadata_value, "v"))` finds runs without `k` that have `v` in another place.
 *
 * The last is from "Negative filtering on key-value pairs" in the official guide to querying traces; the first from its
 * examples, except for `or`, of which it says nothing.
 *
 * @throws FilterError where one `and` names two keys and a value, which could belong to either
 */
export function withPairs(parsed: Parsed): Filter {
  switch (parsed.op) {
    case "and":
      return { op: "and", of: paired(parsed.of) };
    case "or":
      return { op: "or", of: parsed.of.map(withPairs) };
    case "not":
      return { op: "not", of: withPairs(parsed.of) };
    case "plain":
      return parsed.filter;
    case "entry":
      return isDenial(parsed.condition) ? denied(parsed) : about(parsed.kind, [parsed.condition]);
  }
}

function paired(parts: Parsed[]): Filter[] {
  const groups = [togetherIn(parts, "feedback"), togetherIn(parts, "metadata")].filter((group) => group.length > 1);
  return parts.flatMap((part) => {
    const group = groups.find((members) => members.some((member) => member.part === part));
    if (!group) return [withPairs(part)];
    const [first] = group as [Member];
    // The group stands where its first condition stood.
    return part === first.part
      ? [
          about(
            first.kind,
            group.map((member) => member.condition),
          ),
        ]
      : [];
  });
}

/** One argument of an `and` that says something about an entry. */
interface Member {
  part: Parsed;
  kind: EntryKind;
  condition: EntryCondition<EntryField>;
  /** Whether it is about the entry's key. */
  key: boolean;
  denial: boolean;
}

/** The arguments of an `and` that mean the same feedback (entry of the metadata). */
function togetherIn(parts: Parsed[], kind: EntryKind): Member[] {
  const members = parts.flatMap((part) => memberOf(part, kind) ?? []);
  const keys = members.filter(({ key, denial }) => key && !denial);
  const values = members.filter(({ key }) => !key);
  const second = keys[1];
  if (second && values.length > 0) {
    throw new FilterError(
      second.part.at,
      `a second ${kind}_key in the same and(...) leaves open whose value is meant; write one and(...) for each key.`,
    );
  }
  if (second) return [];
  return members.filter(({ key, denial }) => !denial || (!key && keys.length === 1));
}

function memberOf(part: Parsed, kind: EntryKind): Member | undefined {
  if (part.op === "entry" && part.kind === kind) {
    const { condition } = part;
    return { part, kind, condition, key: isKey(condition), denial: isDenial(condition) };
  }
  if (part.op !== "or") return undefined;
  const of = part.of.flatMap((one) => (one.op === "entry" && one.kind === kind ? [one.condition] : []));
  const key = of.every(isKey);
  const denial = of.some(isDenial);
  // Of key and value mixed, or without a key, each alternative speaks for itself.
  if (of.length < part.of.length || (key ? denial : of.some(isKey))) return undefined;
  return { part, kind, condition: { op: "or", of }, key, denial };
}

const isKey = ({ field }: Condition<EntryField>) => field === "feedback_key" || field === "metadata_key";

/** `neq` with null affirms: there is a value. */
const isDenial = (condition: Condition<EntryField>) => condition.op === "neq" && condition.value !== null;

function denied({ kind, condition }: Parsed & { op: "entry" }): Filter {
  return { op: "not", of: about(kind, [{ ...condition, op: "eq" } as Condition<EntryField>]) };
}

function about(kind: EntryKind, where: EntryCondition<EntryField>[]): EntryFilter {
  return kind === "feedback"
    ? { op: kind, where: where as EntryCondition<FeedbackField>[] }
    : { op: kind, where: where as EntryCondition<MetadataField>[] };
}
