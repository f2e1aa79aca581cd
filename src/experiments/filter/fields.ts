import { microsecondsOf } from "../../platform/lib/times.ts";
import { looseUuid } from "../contract/fields.ts";
import type { EntryField, RunField, Scalar } from "./filter.ts";

/** What a field holds: `json` is any scalar, kept as it is, so that `true` and `"true"` are two values. */
type Kind = "uuid" | "text" | "error" | "seconds" | "time" | "number" | "boolean" | "json" | "list";

interface FieldRule {
  kind: Kind;
  /** Whether a run may lack it, and `null` may be compared with it. */
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
  feedback_key: { kind: "text", nullable: false },
  feedback_score: { kind: "number", nullable: true },
  feedback_value: { kind: "json", nullable: true },
  metadata_key: { kind: "text", nullable: false },
  metadata_value: { kind: "json", nullable: true },
};

export type FieldName = keyof typeof FIELDS;

/** Names for other things than one field of a run: the parser turns each into conditions on the fields above. */
export const OTHER_NAMES = ["reference_example_id", "metadata", "thread_id"] as const;

export type OtherName = (typeof OTHER_NAMES)[number];

export const isField = (name: string): name is FieldName => Object.hasOwn(FIELDS, name);

export const isOtherName = (name: string): name is OtherName => (OTHER_NAMES as readonly string[]).includes(name);

/** Fields that have an order. A `json` value has one where it is a number. */
const ORDERED: ReadonlySet<Kind> = new Set<Kind>(["seconds", "time", "number", "json"]);

export const hasOrder = (field: FieldName): boolean => ORDERED.has(FIELDS[field].kind);

export const orderedFields = (): string => (Object.keys(FIELDS) as FieldName[]).filter(hasOrder).join(", ");

/**
 * What a value means for a field: seconds, microseconds, a UUID in lower case ...
 *
 * @returns undefined when it is not of the field's type
 */
export function valueFor(field: FieldName, written: Scalar): Scalar | undefined {
  const { kind, nullable } = FIELDS[field];
  if (written === null) return nullable ? null : undefined;
  return READERS[kind].read(written);
}

/** The type of a field in words, such as `seconds as a number or a text like "5s", or null`. */
export function expectedFor(field: FieldName): string {
  const { kind, nullable } = FIELDS[field];
  return nullable ? `${READERS[kind].expected}, or null` : READERS[kind].expected;
}

interface Reader {
  expected: string;
  read(written: string | number | boolean): Scalar | undefined;
}

const ofType =
  (...types: string[]) =>
  (written: string | number | boolean) =>
    types.includes(typeof written) ? written : undefined;

const ofText = (read: (text: string) => Scalar | undefined) => (written: string | number | boolean) =>
  typeof written === "string" ? read(written) : undefined;

const READERS: Record<Kind, Reader> = {
  uuid: { expected: "a UUID in quotes", read: ofText((text) => looseUuid.safeParse(text).data) },
  text: { expected: "a text in quotes", read: ofType("string") },
  error: { expected: "a text in quotes, true or false", read: ofType("string", "boolean") },
  seconds: {
    expected: 'seconds as a number or a text like "5s" (units: ms, s, m, h)',
    read: (written) => (typeof written === "string" ? secondsOf(written) : ofType("number")(written)),
  },
  time: { expected: 'a time like "2024-07-29T21:00:00Z"', read: ofText(microsecondsOf) },
  number: { expected: "a number", read: ofType("number") },
  boolean: { expected: "true or false", read: ofType("boolean") },
  json: { expected: "a text in quotes, a number, true or false", read: ofType("string", "number", "boolean") },
  list: { expected: "no value", read: () => undefined },
};

/** Milliseconds are divided, because 700 * 0.001 is not 0.7. */
const SECONDS_IN: Record<string, (amount: number) => number> = {
  ms: (amount) => amount / 1000,
  s: (amount) => amount,
  m: (amount) => amount * 60,
  h: (amount) => amount * 3600,
};

/** The docs write "5s"; which further units the official service takes is not published. */
function secondsOf(text: string): number | undefined {
  const [, amount, unit = ""] = /^(\d{1,15}(?:\.\d{1,15})?) ?(ms|s|m|h)$/.exec(text.trim()) ?? [];
  return SECONDS_IN[unit]?.(Number(amount));
}
