import fc from "fast-check";

/** When the runs that are filtered begin. */
export const START = Date.UTC(2026, 0, 1, 0, 7, 8);

/** Names of runs, keys of feedback and of metadata. */
export const NAMES = ["alpha", "Alpha", "beta", "Größe 100%", 'say "hi"', "back\\slash", "it's", "a.b", "", "null"];

export const ERRORS = [null, "", "boom", "Größe: 100% _ falsch", null, 'a "quoted" one', "null", null];

export const LATENCIES_MS = [0, 1, 10, 123, 500, 999, 1000, 1001, 60_000];

/** Values of metadata and of feedback, all of their kinds, and numbers that are hard to write. */
export const SCALARS = [
  "alpha",
  "",
  "1",
  "true",
  "null",
  'with "quotes"',
  "it's",
  "back\\slash",
  "é\u2028😀",
  0,
  1,
  -1,
  0.1,
  0.5,
  0.30000000000000004,
  0.3,
  123456789012345680,
  9007199254740991,
  1e21,
  1.5e-7,
  -2.5,
  true,
  false,
  null,
] as const;

/** What inputs and outputs say. */
export const WORDS = [
  "Alpha and BETA",
  "beta",
  "Größe ÉTÉ",
  "100% sure_ly",
  "nothing",
  'a "quoted" word',
  "back\\slash",
  "line\nbreak",
  "😀 smile",
];

/** A value as an expression has it: in double quotes, or in single ones where it has none itself. */
const written = (value: string | number | boolean | null): fc.Arbitrary<string> => {
  const json = JSON.stringify(value);
  return typeof value === "string" && !/['\u2028]/.test(value)
    ? fc.constantFrom(json, `'${value}'`)
    : fc.constant(json);
};

const oneOf = (values: readonly (string | number | boolean | null)[]): fc.Arbitrary<string> =>
  fc.constantFrom(...values).chain(written);

const iso = fc
  .tuple(fc.integer({ min: -1, max: 9 }), fc.constantFrom("Z", "500Z"))
  .map(([ms, end]) => `"${new Date(START + ms).toISOString().slice(0, -1)}${end}"`);

/** What fields are compared with. */
const VALUES: Record<string, fc.Arbitrary<string>> = {
  name: oneOf(NAMES),
  status: oneOf(["success", "error", "pending"]),
  error: oneOf([...ERRORS, true, false]),
  latency: fc
    .constantFrom(...LATENCIES_MS)
    .chain((ms) => fc.constantFrom(`${ms / 1000}`, `"${ms}ms"`, `"${ms / 1000}s"`)),
  start_time: iso,
  end_time: fc.oneof(iso, fc.constant("null")),
  run_type: oneOf(["chain", "llm"]),
  is_root: oneOf([true, false]),
  feedback_key: oneOf(NAMES),
  feedback_score: oneOf([0, 0.5, 1, -0.25, 0.1 + 0.2, 0.3, null]),
  feedback_value: oneOf(SCALARS),
  metadata_key: oneOf([...NAMES, "deep", "list"]),
  metadata_value: oneOf(SCALARS),
};

const ORDERED = ["latency", "start_time", "end_time", "feedback_score", "feedback_value", "metadata_value"];

const condition: fc.Arbitrary<string> = fc.constantFrom(...Object.keys(VALUES)).chain((field) => {
  const value = VALUES[field] as fc.Arbitrary<string>;
  const equal = fc.tuple(fc.constantFrom("eq", "neq"), value).map(([op, one]) => `${op}(${field}, ${one})`);
  const listed = fc.array(value, { maxLength: 3 }).map((all) => `in(${field}, [${all.filter(isListable).join(", ")}])`);
  const exists = fc.constant(`exists(${field})`);
  const order = fc
    .tuple(fc.constantFrom("gt", "gte", "lt", "lte"), value)
    .map(([op, one]) => `${op}(${field}, ${one})`);
  return fc.oneof(
    { weight: 3, arbitrary: equal },
    { weight: 1, arbitrary: listed },
    { weight: 1, arbitrary: exists },
    ...(ORDERED.includes(field) ? [{ weight: 3, arbitrary: order }] : []),
  );
});

/** Lists take neither null nor, of errors, true and false. */
const isListable = (value: string) => !["null", "true", "false"].includes(value);

const others: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...WORDS.flatMap((text) => text.split(/\s+/))).map((word) => `search(${JSON.stringify(word)})`),
  fc.constantFrom(...NAMES).map((key) => `exists(metadata, ${JSON.stringify(key)})`),
  fc
    .tuple(fc.constantFrom(...NAMES), fc.constantFrom(...SCALARS))
    .map(([key, value]) => `has(metadata, ${JSON.stringify(JSON.stringify({ [key]: value }))})`),
  fc.constantFrom('has(tags, "alpha")', "exists(tags)", 'eq(thread_id, "alpha")', 'in(thread_id, ["1", "alpha"])'),
);

/** What is said of one feedback, or of one entry of the metadata. */
const together: fc.Arbitrary<string> = fc.constantFrom("feedback", "metadata").chain((kind) => {
  const key = VALUES[`${kind}_key`] as fc.Arbitrary<string>;
  const fields = kind === "feedback" ? ["feedback_score", "feedback_value"] : ["metadata_value"];
  const about = fc
    .constantFrom(...fields)
    .chain((field) =>
      fc
        .tuple(fc.constantFrom("eq", "neq", "gt", "lte"), VALUES[field] as fc.Arbitrary<string>)
        .map(([op, value]) => `${op}(${field}, ${value})`),
    );
  const either = fc.tuple(about, about).map((two) => `or(${two.join(", ")})`);
  return fc
    .tuple(fc.constantFrom("eq", "neq"), key, fc.array(fc.oneof(about, either), { minLength: 1, maxLength: 2 }))
    .map(([op, one, rest]) => `and(${op}(${kind}_key, ${one}), ${rest.join(", ")})`);
});

/**
 * Expressions as a user might write them. Some cannot be read (a text has no order, two keys share a value): that they are
 * refused is part of what is tried.
 */
export const anyExpression: fc.Arbitrary<string> = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small" },
    { weight: 4, arbitrary: condition },
    { weight: 2, arbitrary: together },
    { weight: 1, arbitrary: others },
    {
      weight: 3,
      arbitrary: fc
        .tuple(fc.constantFrom("and", "or"), fc.array(tie("node"), { minLength: 1, maxLength: 3 }))
        .map(([op, of]) => `${op}(${of.join(", ")})`),
    },
    { weight: 1, arbitrary: tie("node").map((of) => `not(${of})`) },
  ),
})).node;
