import { microsecondsOf } from "../../platform/lib/times.ts";
import { uuidOrHex } from "../contract/fields.ts";
import type { EntryField, RunField, Scalar } from "../storage/run-filter.ts";

/** `json` is any JSON scalar: `true` and `"true"` are different values. */
type Kind = "uuid" | "text" | "error" | "seconds" | "time" | "number" | "boolean" | "json" | "list";

interface FieldRule {
  kind: Kind;
  /** Whether the field may be null and can be compared with null. */
  nullable: boolean;
}

export const FIELDS: Record<RunField | EntryField, FieldRule> = {
  id: { kind: "uuid", nullable: false },
  name: { kind: "text", nullable: false },
  status: { kind: "text", nullable: false },
  error: { kind: "error", nullable: true },
  latency: { kind: "seconds", nullable: true },
  start_time: { kind: "time", nullable: false },
  end_time: { kind: "time", nullable: true },
  run_type: { kind: "text", nullable: false },
  tags: { kind: "list", nullable: false },
  is_root: { kind: "boolean", nullable: false },
  reference_example: { kind: "uuid", nullable: true },
  trace_id: { kind: "uuid", nullable: false },
  parent_run_id: { kind: "uuid", nullable: true },
  first_token_time: { kind: "time", nullable: true },
  total_tokens: { kind: "number", nullable: false },
  prompt_tokens: { kind: "number", nullable: false },
  completion_tokens: { kind: "number", nullable: false },
  total_cost: { kind: "number", nullable: true },
  feedback_key: { kind: "text", nullable: false },
  feedback_score: { kind: "number", nullable: true },
  feedback_value: { kind: "json", nullable: true },
  metadata_key: { kind: "text", nullable: false },
  metadata_value: { kind: "json", nullable: true },
};

export type FieldName = keyof typeof FIELDS;

/** Names that are not fields of the stored runs. The parser translates them to other conditions. */
export const PSEUDO_FIELDS = ["reference_example_id", "metadata", "thread_id", "ls_model_name"] as const;

export type PseudoField = (typeof PSEUDO_FIELDS)[number];

export const isField = (name: string): name is FieldName => Object.hasOwn(FIELDS, name);

export const isPseudoField = (name: string): name is PseudoField => (PSEUDO_FIELDS as readonly string[]).includes(name);

/** Kinds with an order. A `json` value has an order if it is a number. */
const ORDERED: ReadonlySet<Kind> = new Set<Kind>(["seconds", "time", "number", "json"]);

export const hasOrder = (field: FieldName): boolean => ORDERED.has(FIELDS[field].kind);

export const orderedFields = (): string => (Object.keys(FIELDS) as FieldName[]).filter(hasOrder).join(", ");

/** Converts a literal to the unit of a field. Undefined when the literal does not have the type of the field. */
export function toFieldValue(field: FieldName, literal: Scalar): Scalar | undefined {
  const { kind, nullable } = FIELDS[field];
  if (literal === null) return nullable ? null : undefined;
  return LITERAL_TYPES[kind].convert(literal);
}

export function expectedLiteral(field: FieldName): string {
  const { kind, nullable } = FIELDS[field];
  const { expected } = LITERAL_TYPES[kind];
  return nullable ? `${expected}, or null` : expected;
}

interface LiteralType {
  expected: string;
  convert(literal: string | number | boolean): Scalar | undefined;
}

const ofType =
  (...types: string[]) =>
  (literal: string | number | boolean) =>
    types.includes(typeof literal) ? literal : undefined;

const ofText = (convert: (text: string) => Scalar | undefined) => (literal: string | number | boolean) =>
  typeof literal === "string" ? convert(literal) : undefined;

const LITERAL_TYPES: Record<Kind, LiteralType> = {
  uuid: { expected: "a quoted UUID", convert: ofText((text) => uuidOrHex.safeParse(text).data) },
  text: { expected: "a quoted string", convert: ofType("string") },
  error: { expected: "true, false, a quoted string", convert: ofType("string", "boolean") },
  seconds: {
    expected: 'a number of seconds, or a string such as "5s" (units: ms, s, m, h)',
    convert: (literal) => (typeof literal === "string" ? parseSeconds(literal) : ofType("number")(literal)),
  },
  time: { expected: 'a time such as "2024-07-29T21:00:00Z"', convert: ofText(microsecondsOf) },
  number: { expected: "a number", convert: ofType("number") },
  boolean: { expected: "true or false", convert: ofType("boolean") },
  json: { expected: "true, false, a number, a quoted string", convert: ofType("string", "number", "boolean") },
  list: { expected: "no value", convert: () => undefined },
};

/** Milliseconds are divided, because 700 * 0.001 is not 0.7. */
const SECONDS_IN: Record<string, (amount: number) => number> = {
  ms: (amount) => amount / 1000,
  s: (amount) => amount,
  m: (amount) => amount * 60,
  h: (amount) => amount * 3600,
};

/** The official docs contain only "5s"; the other units are an extension. */
function parseSeconds(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,15}(?:\.\d{1,15})?) ?(ms|s|m|h)$/.exec(text.trim()) ?? [];
  return SECONDS_IN[unit]?.(Number(amount));
}
