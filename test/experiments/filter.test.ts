import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FilterError } from "../../src/experiments/filter/filter-reader.ts";
import { parseFilter } from "../../src/experiments/filter/parse.ts";
import type { Condition, RunFilter as Filter, Scalar } from "../../src/experiments/storage/run-filter.ts";
import { type FilterableRun, matches } from "../support/evaluate-filter.ts";

const ID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const OTHER_ID = "ffffffff-4e5f-6071-8293-a4b5c6d7e8f9";
/** 2024-07-29T21:00:00Z in microseconds. */
const START = Date.UTC(2024, 6, 29, 21) * 1000;

const RUN: FilterableRun = {
  id: ID,
  name: "support agent",
  status: "success",
  error: null,
  latency: 2,
  start_time: START,
  end_time: START + 2_000_000,
  run_type: "chain",
  tags: ["prod", "v2"],
  is_root: true,
  reference_example: OTHER_ID,
  metadata: { split: "test", user: 7, ls_é: true, nothing: null },
  feedback: [
    { key: "correctness", score: 0.25, value: null },
    { key: "style", score: 1, value: "good" },
    { key: "note", score: null, value: "halted" },
  ],
  text: () => 'What is Docker? "A container ENGINE."',
};

const run = (changes: Partial<FilterableRun> = {}): FilterableRun => ({ ...RUN, ...changes });

const holds = (expression: string, changes?: Partial<FilterableRun>) => matches(parseFilter(expression), run(changes));

describe("expressions of the official docs and clients", () => {
  const time = { op: "gt", field: "start_time", value: Date.UTC(2023, 6, 15, 12, 34, 56) * 1000 } as const;
  const key = (value: string): Condition<"feedback_key"> => ({ op: "eq", field: "feedback_key", value });
  const metadata = (name: string, value: Scalar): Filter => ({
    op: "metadata",
    where: [
      { op: "eq", field: "metadata_key", value: name },
      { op: "eq", field: "metadata_value", value },
    ],
  });
  const cases: [string, Filter][] = [
    ['eq(status, "error")', { op: "eq", field: "status", value: "error" }],
    ['gt(latency, "5s")', { op: "gt", field: "latency", value: 5 }],
    ["neq(error, null)", { op: "neq", field: "error", value: null }],
    ['gt(start_time, "2023-07-15T12:34:56Z")', time],
    ['search("image classification")', { op: "search", words: ["image", "classification"] }],
    ['has(tags, "2aa1cf4")', { op: "has", field: "tags", value: "2aa1cf4" }],
    [`in(name, ["a", 'b'])`, { op: "in", field: "name", values: ["a", "b"] }],
    [
      'and(eq(run_type, "chain"), gt(latency, 10))',
      {
        op: "and",
        of: [
          { op: "eq", field: "run_type", value: "chain" },
          { op: "gt", field: "latency", value: 10 },
        ],
      },
    ],
    [
      'and(eq(feedback_key, "star_rating"), gt(feedback_score, 4))',
      {
        op: "and",
        of: [{ op: "feedback", where: [key("star_rating"), { op: "gt", field: "feedback_score", value: 4 }] }],
      },
    ],
    [
      'and(gt(start_time, "2023-07-15T12:34:56Z"), or(neq(error, null), and(eq(feedback_key, "Correctness"), eq(feedback_score, 0.0))))',
      {
        op: "and",
        of: [
          time,
          {
            op: "or",
            of: [
              { op: "neq", field: "error", value: null },
              {
                op: "and",
                of: [{ op: "feedback", where: [key("Correctness"), { op: "eq", field: "feedback_score", value: 0 }] }],
              },
            ],
          },
        ],
      },
    ],
    ["eq(metadata_key, 'user_id')", { op: "metadata", where: [{ op: "eq", field: "metadata_key", value: "user_id" }] }],
    [
      "and(eq(name, 'ChatOpenAI'), eq(metadata_key, 'conversation_id'), eq(metadata_value, '69b12c91'))",
      { op: "and", of: [{ op: "eq", field: "name", value: "ChatOpenAI" }, metadata("conversation_id", "69b12c91")] },
    ],
    [
      'and(in(metadata_key, ["session_id","conversation_id","thread_id"]), eq(metadata_value, "t"))',
      { op: "and", of: [entryOfThread] },
    ],
    ['eq(thread_id, "t")', thread("t")],
    ['neq(thread_id, "t")', { op: "not", of: thread("t") }],
    ['in(thread_id, ["t", "u"])', thread("t", "u")],
    [
      `and(not(has(metadata, '{"foo": "bar"}')), exists(metadata, "tenant_id"))`,
      {
        op: "and",
        of: [
          { op: "not", of: metadata("foo", "bar") },
          { op: "metadata", where: [{ op: "eq", field: "metadata_key", value: "tenant_id" }] },
        ],
      },
    ],
    [`has(metadata, '{"a": 1, "b": "\\"q\\""}')`, { op: "and", of: [metadata("a", 1), metadata("b", '"q"')] }],
    [
      'and(eq(feedback_key, "outcome"), eq(feedback_value, "halted"))',
      {
        op: "and",
        of: [{ op: "feedback", where: [key("outcome"), { op: "eq", field: "feedback_value", value: "halted" }] }],
      },
    ],
  ];

  it.each(cases)("reads %s", (expression, filter) => {
    expect(parseFilter(expression)).toEqual(filter);
  });
});

const thread = (...ids: string[]): Filter => ({ op: "thread", ids });

const entryOfThread: Filter = {
  op: "metadata",
  where: [
    { op: "in", field: "metadata_key", values: ["session_id", "conversation_id", "thread_id"] },
    { op: "eq", field: "metadata_value", value: "t" },
  ],
};

describe("values have the type of their field", () => {
  const one = (expression: string) => {
    const filter = parseFilter(expression);
    return "value" in filter ? filter.value : filter;
  };
  const cases: [string, Scalar][] = [
    [`eq(id, "${ID.toUpperCase()}")`, ID],
    [`eq(id, "${ID.replaceAll("-", "")}")`, ID],
    [`eq(reference_example_id, '${ID}')`, ID],
    ["eq(latency, 0.5)", 0.5],
    ["eq(latency, 2)", 2],
    ['eq(latency, "1.5s")', 1.5],
    ['eq(latency, "700ms")', 0.7],
    ['eq(latency, "2 m")', 120],
    ['eq(latency, "1h")', 3600],
    ["eq(latency, -1e-3)", -0.001],
    ["eq(latency, +.5)", 0.5],
    ["eq(latency, null)", null],
    ['eq(start_time, "2024-07-29T21:00:00Z")', START],
    ['eq(start_time, "2024-07-29T21:00:00")', START],
    ['eq(start_time, "2024-07-29 23:00:00.123456+02:00")', START + 123_456],
    ['eq(end_time, "2024-07-29")', START - 21 * 3_600_000_000],
    ["eq(end_time, None)", null],
    ["eq(is_root, true)", true],
    ["eq(is_root, False)", false],
    ['eq(error, "boom")', "boom"],
    ["eq(error, NULL)", null],
    ['eq(name, "a\\"b\\\\c\\n\\u00e9/\\/")', 'a"b\\c\né//'],
    ["eq(name, 'C:\\new \"x\"')", 'C:\\new "x"'],
    ['eq(name, "")', ""],
    ['eq(name, "\\u0000 \\ud83d")', "\ufffd \ufffd"],
  ];

  it.each(cases)("%s", (expression, value) => {
    expect(one(expression)).toEqual(value);
  });

  it("keeps values of metadata and feedback unchanged", () => {
    for (const [written, value] of [
      ['"7"', "7"],
      ["7", 7],
      ["true", true],
      ["null", null],
    ] as const) {
      for (const kind of ["metadata", "feedback"] as const) {
        const filter = parseFilter(`eq(${kind}_value, ${written})`);
        expect(filter).toEqual({ op: kind, where: [{ op: "eq", field: `${kind}_value`, value }] });
      }
    }
  });

  it("reads eq and neq of an error with true and false as a test for any error", () => {
    const some = { op: "neq", field: "error", value: null };
    const none = { op: "eq", field: "error", value: null };
    expect([true, false].map((value) => parseFilter(`eq(error, ${value})`))).toEqual([some, none]);
    expect([true, false].map((value) => parseFilter(`neq(error, ${value})`))).toEqual([none, some]);
  });
});

describe("matches", () => {
  /** An expression, changes that make the run match, and changes that make it not match. */
  const cases: [string, Partial<FilterableRun>, ...Partial<FilterableRun>[]][] = [
    [`eq(id, "${ID}")`, {}, { id: OTHER_ID }],
    [`neq(id, "${ID}")`, { id: OTHER_ID }, {}],
    [`in(id, ["${OTHER_ID}", "${ID}"])`, {}, { id: "00000000-4e5f-6071-8293-a4b5c6d7e8f9" }],
    ["exists(id)", {}],
    ['eq(name, "support agent")', {}, { name: "Support agent" }, { name: "support" }],
    ['neq(name, "a")', {}, { name: "a" }],
    ['in(name, ["a", "b"])', { name: "b" }, { name: "c" }],
    ['in(name, ["]", ","])', { name: "," }, { name: "" }],
    ['eq(status, "error")', { status: "error" }, {}],
    ['neq(status, "error")', {}, { status: "error" }],
    ['in(run_type, ["llm"])', { run_type: "llm" }, {}],
    ["eq(error, null)", {}, { error: "boom" }, { error: "" }],
    ["neq(error, null)", { error: "" }, {}],
    ["exists(error)", { error: "boom" }, {}],
    ['eq(error, "boom")', { error: "boom" }, { error: "boom!" }, { error: null }],
    ['neq(error, "boom")', { error: "other" }, { error: "boom" }, { error: null }],
    ['not(eq(error, "boom"))', { error: null }, { error: "boom" }],
    ['in(error, ["a", "b"])', { error: "a" }, { error: null }],
    ["eq(latency, 2)", {}, { latency: 2.1 }, { latency: null }],
    ["neq(latency, 2)", { latency: 3 }, {}, { latency: null }],
    ["gt(latency, 2)", { latency: 2.001 }, {}, { latency: null }],
    ["gte(latency, 2)", {}, { latency: 1.9 }, { latency: null }],
    ["lt(latency, 2)", { latency: 0 }, {}, { latency: null }],
    ["lte(latency, 2)", {}, { latency: 2.1 }, { latency: null }],
    ["in(latency, [1, 2])", {}, { latency: 3 }],
    ["eq(latency, null)", { latency: null }, {}],
    ["exists(latency)", { latency: 0 }, { latency: null }],
    ['gt(start_time, "2024-07-29T21:00:00Z")', { start_time: START + 1 }, {}],
    ['gte(start_time, "2024-07-29T23:00:00+02:00")', {}, { start_time: START - 1 }],
    ['lt(end_time, "2024-07-29T21:00:02.000001Z")', {}, { end_time: START + 2_000_001 }, { end_time: null }],
    ['lte(end_time, "2024-07-29T21:00:02")', {}, { end_time: START + 2_000_001 }, { end_time: null }],
    ['eq(start_time, "2024-07-29T21:00:00Z")', {}, { start_time: START + 1 }],
    ["neq(end_time, null)", {}, { end_time: null }],
    ["eq(is_root, true)", {}, { is_root: false }],
    ["neq(is_root, true)", { is_root: false }, {}],
    ["in(is_root, [false])", { is_root: false }, {}],
    [`eq(reference_example, "${OTHER_ID}")`, {}, { reference_example: ID }, { reference_example: null }],
    ["eq(reference_example, null)", { reference_example: null }, {}],
    ['has(tags, "v2")', {}, { tags: ["V2", "v21"] }, { tags: [] }],
    ["exists(tags)", {}, { tags: [] }],
    ['search("docker")', {}, { text: () => "podman" }],
    [
      'search("say \\"HI\\"")',
      { text: () => JSON.stringify({ name: 'say "hi"' }) },
      { text: () => JSON.stringify({ name: "say hi" }) },
    ],
    ["search('C:\\TEMP')", { text: () => JSON.stringify({ in: "c:\\temp" }) }, { text: () => "c:temp" }],
    ['search("engine DOCK")', {}, { text: () => "an engine" }, { text: () => "a dock" }],
  ];

  it.each(cases)("%s", (expression, yes, ...noes) => {
    expect(holds(expression, yes)).toBe(true);
    expect(noes.map((no) => holds(expression, no))).toEqual(noes.map(() => false));
  });

  it("finds nothing in an empty list", () => {
    expect(holds("in(name, [])")).toBe(false);
    expect(holds("not(in(name, []))")).toBe(true);
  });

  it("combines with and, or and not", () => {
    const sides: [boolean, boolean][] = [
      [true, true],
      [true, false],
      [false, true],
      [false, false],
    ];
    for (const [a, b] of sides) {
      const [left, right] = [`eq(is_root, ${a})`, `in(name, [${b ? '"support agent"' : ""}])`];
      expect(holds(`and(${left}, ${right})`)).toBe(a && b);
      expect(holds(`or(${left}, ${right})`)).toBe(a || b);
      expect(holds(`not(and(${left}, ${right}))`)).toBe(!(a && b));
    }
  });

  it("reads the text once, and only when a search needs it", () => {
    let asked = 0;
    const text = () => {
      asked++;
      return "a b";
    };
    expect(holds('and(eq(is_root, false), search("a"))', { text })).toBe(false);
    expect(asked).toBe(0);
    expect(holds('and(search("a"), search("b"), not(search("c")))', { text })).toBe(true);
    expect(asked).toBe(1);
  });
});

describe("feedback and metadata", () => {
  /** The run has correctness 0.25; style 1 "good"; note null "halted"; split "test", user 7, ls_é true, nothing null. */
  const cases: [string, boolean][] = [
    // One condition alone speaks of any feedback, of any entry.
    ['eq(feedback_key, "style")', true],
    ['eq(feedback_key, "tone")', false],
    ["eq(feedback_score, 0.25)", true],
    ["gt(feedback_score, 1)", false],
    ["eq(feedback_score, null)", true],
    ['eq(feedback_value, "halted")', true],
    ['in(feedback_key, ["tone", "note"])', true],
    ["exists(feedback_key)", true],
    ['eq(metadata_key, "ls_é")', true],
    ["eq(metadata_value, 7)", true],
    ['eq(metadata_value, "7")', false],
    ['eq(metadata_value, "true")', false],
    ["gte(metadata_value, 7)", true],
    ["gt(metadata_value, 7)", false],
    ["eq(metadata_value, null)", true],
    // Side by side they speak of the same one.
    ['and(eq(feedback_key, "style"), gt(feedback_score, 0.5))', true],
    ['and(gt(feedback_score, 0.5), eq(feedback_key, "style"))', true],
    ['and(eq(feedback_key, "correctness"), gt(feedback_score, 0.5))', false],
    ['and(eq(feedback_key, "style"), eq(feedback_score, 1), eq(feedback_value, "good"))', true],
    ['and(eq(feedback_key, "style"), eq(feedback_score, 1), eq(feedback_value, "halted"))', false],
    ['and(eq(feedback_score, 1), eq(feedback_value, "halted"))', false],
    ['and(eq(feedback_key, "note"), exists(feedback_score))', false],
    ['and(eq(feedback_key, "note"), eq(feedback_score, null))', true],
    ['and(eq(feedback_key, "note"), neq(feedback_score, null))', false],
    ['and(eq(feedback_key, "note"), neq(feedback_score, 1))', false],
    ['and(eq(metadata_key, "split"), eq(metadata_value, "test"))', true],
    ['and(eq(metadata_key, "user"), eq(metadata_value, "test"))', false],
    ['and(in(metadata_key, ["user", "split"]), eq(metadata_value, "test"))', true],
    ['and(eq(metadata_key, "nothing"), eq(metadata_value, null))', true],
    ['and(eq(metadata_key, "split"), in(metadata_value, ["a", "test"]), eq(feedback_key, "style"))', true],
    ['and(eq(metadata_key, "split"), eq(feedback_key, "style"), eq(feedback_score, 0.25))', false],
    // An or among them is about the same one too.
    ['and(eq(feedback_key, "correctness"), or(lt(feedback_score, 0.2), gt(feedback_score, 0.8)))', false],
    ['and(eq(feedback_key, "style"), or(lt(feedback_score, 0.2), gt(feedback_score, 0.8)))', true],
    ['and(or(eq(feedback_key, "note"), eq(feedback_key, "correctness")), eq(feedback_score, 1))', false],
    ['and(or(eq(feedback_key, "note"), eq(feedback_key, "style")), eq(feedback_score, 1))', true],
    ['and(eq(feedback_key, "style"), or(neq(feedback_score, 1), eq(feedback_value, "good")))', true],
    ['and(eq(metadata_key, "user"), or(eq(metadata_value, "test"), eq(metadata_value, true)))', false],
    // Further away they speak of different ones, and so where an or mixes key and value.
    ['and(or(eq(metadata_key, "user"), eq(metadata_value, "test")), eq(metadata_value, true))', true],
    ['and(eq(feedback_key, "correctness"), and(gt(feedback_score, 0.5)))', true],
    ['and(eq(feedback_key, "correctness"), or(gt(feedback_score, 0.5), eq(is_root, false)))', true],
    ['and(eq(metadata_key, "user"), not(eq(metadata_value, "test")))', false],
    ['and(eq(feedback_key, "style"), eq(feedback_key, "note"))', true],
    ['and(eq(feedback_key, "style"), eq(feedback_key, "tone"))', false],
    [
      'and(and(eq(metadata_key, "split"), eq(metadata_value, "test")), and(eq(metadata_key, "user"), eq(metadata_value, 7)))',
      true,
    ],
    // neq of a key, or of a value beside no key, says that there is none.
    ['neq(metadata_key, "split")', false],
    ['neq(metadata_key, "other")', true],
    ['and(eq(metadata_key, "split"), neq(metadata_value, "train"))', true],
    ['and(eq(metadata_key, "split"), neq(metadata_value, "test"))', false],
    ['and(eq(metadata_key, "other"), neq(metadata_value, "test"))', false],
    ['and(neq(metadata_key, "other"), neq(metadata_value, "train"))', true],
    ['and(neq(metadata_key, "other"), neq(metadata_value, "test"))', false],
    ['and(neq(metadata_key, "user"), eq(metadata_value, "test"))', false],
    ['and(neq(metadata_key, "other"), eq(metadata_value, "test"))', true],
    ['neq(feedback_key, "style")', false],
    ["neq(feedback_score, 1)", false],
    ["neq(feedback_score, 0.75)", true],
    ["neq(feedback_score, null)", true],
    // Of metadata as an object, and of threads.
    [`has(metadata, '{"split": "test", "user": 7}')`, true],
    [`has(metadata, '{"split": "test", "user": "7"}')`, false],
    ['exists(metadata, "nothing")', true],
    ['exists(metadata, "something")', false],
    ['eq(thread_id, "test")', false],
  ];

  it.each(cases)("%s is %s", (expression, expected) => {
    expect(holds(expression)).toBe(expected);
  });

  it("finds a thread by each of its three metadata keys", () => {
    for (const key of ["session_id", "conversation_id", "thread_id"]) {
      expect(holds('eq(thread_id, "t")', { metadata: { [key]: "t" } })).toBe(true);
      expect(holds('neq(thread_id, "t")', { metadata: { [key]: "t" } })).toBe(false);
      expect(holds('eq(thread_id, "t")', { metadata: { [key]: "u", other: "t" } })).toBe(false);
      expect(holds('in(thread_id, ["t", "u"])', { metadata: { [key]: "u" } })).toBe(true);
    }
  });

  it("match a run without any only when the condition is negated", () => {
    const none = { feedback: [], metadata: {} };
    expect(holds("exists(feedback_key)", none)).toBe(false);
    expect(holds("eq(feedback_score, null)", none)).toBe(false);
    expect(holds('neq(feedback_key, "style")', none)).toBe(true);
    expect(holds('neq(metadata_value, "a")', none)).toBe(true);
  });

  it("match metadata only by its own keys, and nested values by none", () => {
    expect(holds('eq(metadata_key, "constructor")')).toBe(false);
    expect(holds('eq(metadata_key, "toString")')).toBe(false);
    const nested = { metadata: { a: { b: 1 } } };
    expect(holds('and(eq(metadata_key, "a"), neq(metadata_value, null))', nested)).toBe(true);
    expect(holds('eq(metadata_value, "[object Object]")', nested)).toBe(false);
  });

  it("are grouped at the position of the first of them", () => {
    const filter = parseFilter('and(gt(feedback_score, 0.5), eq(is_root, true), eq(feedback_key, "k"))');
    expect(filter).toEqual({
      op: "and",
      of: [
        {
          op: "feedback",
          where: [
            { op: "gt", field: "feedback_score", value: 0.5 },
            { op: "eq", field: "feedback_key", value: "k" },
          ],
        },
        { op: "eq", field: "is_root", value: true },
      ],
    });
  });
});

describe("a FilterError states the position and the error", () => {
  /** `§` marks the position, and is not part of the expression. */
  const cases: [string, string][] = [
    ["§", "expected an operator (and, or, not"],
    ["  §", "found the end."],
    ['§"eq"', 'found the string "eq".'],
    ['§equals(name, "a")', '"equals" is not an operator; the operators are and, or, not, eq,'],
    ['§AND(eq(name, "a"))', '"AND" is not an operator'],
    ['§constructor(name, "a")', '"constructor" is not an operator'],
    ["eq§", 'expected "(", found the end.'],
    ['eq(§latencyy, "5s")', '"latencyy" is not a field of a run; the fields are id, name, status,'],
    ['eq(§__proto__, "5s")', '"__proto__" is not a field of a run'],
    ['eq(§"name", "a")', 'expected a field name without quotes, found the string "name".'],
    ['eq(name §",", "a")', 'expected ",", found the string ",".'],
    ["eq(name§)", 'expected ",", found ")".'],
    ['eq(name, "a"§', 'expected ")", found the end.'],
    ['eq(name, "a"§, "b")', 'expected ")", found ",".'],
    ['eq(name, "a")§, eq(name, "b")', 'expected the end of the filter, found ",".'],
    ['eq(name, "a") §and eq(name, "b")', 'expected the end of the filter, found "and".'],
    ["and(§)", 'found ")".'],
    ['and(eq(name, "a"),§)', 'found ")".'],
    ['not(eq(name, "a")§, eq(name, "b"))', 'expected ")", found ",".'],
    ["eq(name, §agent)", 'name requires a quoted string; found "agent".'],
    ["eq(name, §null)", 'name requires a quoted string; found "null".'],
    ["eq(name, §5)", 'name requires a quoted string; found "5".'],
    [
      "gt(latency, §5s)",
      'latency requires a number of seconds, or a string such as "5s" (units: ms, s, m, h), or null; found "5s".',
    ],
    ['gt(latency, §"5")', 'found the string "5".'],
    ['gt(latency, §"5 days")', 'found the string "5 days".'],
    ["gt(latency, §null)", 'gt cannot compare latency with "null".'],
    ["gt(latency, §1e999)", 'found "1e999".'],
    ["gt(latency, §true)", 'found "true".'],
    ["gt(latency, §constructor)", 'found "constructor".'],
    [
      'gt(start_time, §"yesterday")',
      'start_time requires a time such as "2024-07-29T21:00:00Z"; found the string "yesterday".',
    ],
    ['gt(start_time, §"2024-02-30")', 'found the string "2024-02-30".'],
    ["gt(start_time, §1722286800)", 'found "1722286800".'],
    ['eq(is_root, §"true")', 'is_root requires true or false; found the string "true".'],
    ["eq(error, §1)", "error requires true, false, a quoted string, or null;"],
    ['eq(id, §"7")', 'id requires a quoted UUID; found the string "7".'],
    ["eq(id, §null)", 'id requires a quoted UUID; found "null".'],
    ['eq(reference_example, §"x")', "reference_example requires a quoted UUID, or null;"],
    ['eq(feedback_score, §"high")', "feedback_score requires a number, or null;"],
    ['gt(metadata_value, §"5")', 'gt cannot compare metadata_value with the string "5".'],
    ['gt(§name, "a")', "gt does not support name: gt can be used only with latency, start_time,"],
    ['lt(§id, "a")', "lt does not support id"],
    ['eq(§tags, "a")', 'eq does not support tags: tags are a list; use has(tags, "a").'],
    ['in(§tags, ["a"])', "in does not support tags"],
    ['eq(§metadata, "a")', "eq does not support metadata: use metadata_key and metadata_value."],
    ['gt(§thread_id, "a")', "gt does not support thread_id"],
    ["exists(§thread_id)", "exists does not support thread_id"],
    ["eq(thread_id, §null)", 'expected a quoted thread ID, found "null".'],
    ["in(name, §name)", 'expected "[", found "name".'],
    ['in(name, ["a" §"b"])', 'expected "]", found the string "b".'],
    ['in(name, ["a", §])', 'name requires a quoted string; found "]".'],
    ["in(latency, [1, §null])", '"null" cannot be used in a list; use eq(latency, null).'],
    ["in(error, [§true])", '"true" cannot be used in a list; use eq(error, true).'],
    ['in(name, ["a", §["b"]])', 'found "[".'],
    ['has(§feedback_key, "a")', "has does not support feedback_key: use has(tags,"],
    ["has(tags, §1)", "expected a quoted tag"],
    ['has(metadata, §"user_id")', 'expected a JSON object such as {"k": "v"}, found the string "user_id".'],
    ["has(metadata, §'[1]')", "expected a JSON object"],
    ["has(metadata, §'{}')", "at least one key"],
    [`has(metadata, §'{"a": {"b": 1}}')`, 'the value of "a" must be a string, a number, true, false or null.'],
    [`has(metadata, §'{"a": 1e999}')`, 'the value of "a" must be'],
    [`has(metadata, §'{"__proto__": 1}')`, "expected a JSON object"],
    ["exists(metadata§)", 'expected ",", found ")".'],
    ['exists(error§, "a")', 'expected ")", found ",".'],
    ['search(§inputs, "text")', '(search takes no field), found "inputs".'],
    ['search(§"  ")', "at least one word"],
    ['eq(name, §"abc)', "the string has no closing quote."],
    ["eq(name, §'abc)", "the string has no closing quote."],
    ["eq(name, 'it\\'§s')", 'expected ")", found "s".'],
    [
      'eq(name, "a§\\d")',
      "the escape sequence that starts with \\d is not valid; write two backslashes for one backslash.",
    ],
    ['eq(name, "a§\\B")', "the escape sequence that starts with \\B is not valid"],
    ['eq(name, "a§\\u12")', "the escape sequence that starts with \\u is not valid"],
    ["eq(name §= 5)", '"=" is not part of the filter syntax.'],
    ["eq(name, §é)", '"é" is not part of the filter syntax.'],
    [
      'and(eq(metadata_key, "a"), eq(metadata_value, 1), §eq(metadata_key, "b"))',
      "a second metadata_key in the same and(...) makes it unclear which key the value belongs to; use a separate and(...) for each key.",
    ],
    ['and(gt(feedback_score, 1), eq(feedback_key, "a"), §in(feedback_key, ["b"]))', "a second feedback_key"],
  ];

  it.each(cases)("%s", (marked, sentence) => {
    const error = errorOf(marked.replace("§", ""));
    expect(error?.message).toContain(sentence);
    expect(error?.position).toBe(marked.indexOf("§"));
    expect(error?.message).toMatch(new RegExp(`^At ${marked.indexOf("§")}: .*\\.$`));
  });

  it("quotes a long piece in part", () => {
    expect(errorOf(`eq(${"x".repeat(500)}, 1)`)?.message).toContain(`"${"x".repeat(40)}…"`);
  });
});

/** The error of an expression; undefined when it is a filter. Anything else that is thrown fails the test. */
function errorOf(expression: string): FilterError | undefined {
  try {
    parseFilter(expression);
    return undefined;
  } catch (error) {
    if (error instanceof FilterError) return error;
    throw error;
  }
}

describe("limits", () => {
  const within = (depth: number) => `${"not(".repeat(depth - 1)}eq(is_root, true)${")".repeat(depth - 1)}`;

  it("accepts calls 32 deep and no deeper", () => {
    expect(holds(within(31))).toBe(true);
    expect(holds(within(32))).toBe(false);
    const error = errorOf(within(33));
    expect(error?.message).toBe("At 128: calls are nested more than 32 levels deep.");
  });

  it.each([
    "not(".repeat(5000),
    "and(".repeat(5000),
    "or(eq(is_root,true),".repeat(950),
    `in(name,${"[".repeat(19_000)}`,
    "(".repeat(20_000),
    `has(metadata, '${'{"a":'.repeat(3000)}')`,
    `has(metadata, '${"[".repeat(19_000)}')`,
    `eq(name, "${"\\".repeat(19_000)}`,
    `eq(name, "${"\\u0041".repeat(3000)}`,
    `gt(latency, ${"1".repeat(19_000)}x)`,
    `gt(latency, "${"1".repeat(19_000)}s")`,
    `gt(start_time, "${"2024-07-29 ".repeat(1500)}")`,
  ])("refuses %#: a deep or long piece, without overflowing the stack", (bomb) => {
    expect(errorOf(bomb)).toBeInstanceOf(FilterError);
  });

  it("accepts 20,000 characters and no more", () => {
    const padded = (length: number) => "eq(is_root, true)".padEnd(length, " ");
    expect(holds(padded(20_000))).toBe(true);
    expect(errorOf(padded(20_001))?.message).toBe("At 20000: the filter has 20001 characters; the maximum is 20000.");
  });

  it.each([
    ["calls", (n: number) => `or(${Array(n - 1).fill("exists(id)")})`, 1000],
    ["listed values", (n: number) => `in(latency,[${Array(n - 1).fill("2")}])`, 1000],
    [
      "words",
      (n: number) =>
        `not(search("${Array(n - 2)
          .fill("x")
          .join(" ")}"))`,
      1000,
    ],
    [
      "metadata keys",
      (n: number) =>
        `not(has(metadata,'${JSON.stringify(Object.fromEntries([...Array(n - 2).keys()].map((k) => [`k${k}`, 1])))}'))`,
      1000,
    ],
  ] as const)("accepts 1,000 %s and no more", (_, expression, max) => {
    expect(holds(expression(max))).toBe(true);
    expect(errorOf(expression(max + 1))?.message).toContain(
      "the filter has more than 1000 calls, list values, search words and metadata keys in total.",
    );
  });
});

/** A generated expression: its pieces, and whether it holds, decided from what was generated and not from the text. */
interface Expression {
  tokens: string[];
  holds: (run: FilterableRun) => boolean;
}

type Kind = "feedback" | "metadata";
/** A feedback or an entry of the metadata, in one shape. */
type Entry = { key: string; score: number | null; value: unknown };

const entriesOf = (run: FilterableRun, kind: Kind): Entry[] =>
  kind === "feedback"
    ? run.feedback
    : Object.entries(run.metadata).map(([key, value]) => ({ key, score: null, value }));

const NAMES = ["a", "b", 'q"\\', "é😀"];
const KEYS = ["k", "l", "constructor"];
const SCALARS: (string | number | boolean)[] = ["k", "7", 7, 0.5, true];
const IDS = [ID, OTHER_ID];
const SECONDS = [0, 0.5, 2];
const TIMES = [START, START + 1, START + 2_000_000];

const nullOr = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });

const anyRun: fc.Arbitrary<FilterableRun> = fc.record({
  id: fc.constantFrom(...IDS),
  name: fc.constantFrom(...NAMES),
  status: fc.constantFrom("success", "error"),
  error: nullOr(fc.constantFrom(...NAMES)),
  latency: nullOr(fc.constantFrom(...SECONDS)),
  start_time: fc.constantFrom(...TIMES),
  end_time: nullOr(fc.constantFrom(...TIMES)),
  run_type: fc.constantFrom("chain", "llm"),
  tags: fc.subarray(NAMES),
  is_root: fc.boolean(),
  reference_example: nullOr(fc.constantFrom(...IDS)),
  metadata: fc.dictionary(fc.constantFrom(...KEYS), nullOr(fc.constantFrom(...SCALARS)), { maxKeys: 3 }),
  feedback: fc.array(
    fc.record({
      key: fc.constantFrom(...KEYS),
      score: nullOr(fc.constantFrom(0, 0.5, 1)),
      value: nullOr(fc.constantFrom(...SCALARS)),
    }),
    { maxLength: 3 },
  ),
  text: fc.subarray(["Alpha", "bETA", "gamma"]).map((words) => () => words.join(" ")),
});

/** Ways to write a value. */
function spelled(value: Scalar): fc.Arbitrary<string> {
  if (typeof value !== "string") return fc.constant(JSON.stringify(value));
  const quoted = JSON.stringify(value);
  return value.includes("'") ? fc.constant(quoted) : fc.constantFrom(quoted, `'${value}'`);
}

const isoOf = (us: number) =>
  new Date(Math.floor(us / 1000)).toISOString().replace(/(\.\d+)Z/, `$1${String(us % 1000).padStart(3, "0")}`);

const ORDERS: Record<string, (a: number, b: number) => boolean> = {
  gt: (a, b) => a > b,
  gte: (a, b) => a >= b,
  lt: (a, b) => a < b,
  lte: (a, b) => a <= b,
};

const call = (operator: string, ...parts: string[]) => [
  operator,
  "(",
  ...parts.flatMap((part, i) => (i ? [",", part] : [part])),
  ")",
];

interface Choice {
  field: string;
  of: (run: FilterableRun) => Scalar;
  values: Scalar[];
  spell?: (value: Scalar) => fc.Arbitrary<string>;
  ordered?: boolean;
  nullable?: boolean;
}

const seconds = (value: Scalar) => fc.constantFrom(`${value}`, `"${value}s"`, `'${Number(value) * 1000}ms'`);
const iso = (value: Scalar) => fc.constantFrom(`"${isoOf(Number(value))}Z"`, `'${isoOf(Number(value))}'`);
const uuid = (value: Scalar) => fc.constantFrom(`"${value}"`, `'${String(value).replaceAll("-", "").toUpperCase()}'`);

const CHOICES: Choice[] = [
  { field: "id", of: (r) => r.id, values: IDS, spell: uuid },
  { field: "name", of: (r) => r.name, values: NAMES },
  { field: "status", of: (r) => r.status, values: ["success", "error"] },
  { field: "run_type", of: (r) => r.run_type, values: ["chain", "llm"] },
  { field: "error", of: (r) => r.error, values: NAMES, nullable: true },
  { field: "latency", of: (r) => r.latency, values: SECONDS, spell: seconds, ordered: true, nullable: true },
  { field: "start_time", of: (r) => r.start_time, values: TIMES, spell: iso, ordered: true },
  { field: "end_time", of: (r) => r.end_time, values: TIMES, spell: iso, ordered: true, nullable: true },
  { field: "is_root", of: (r) => r.is_root, values: [true, false] },
  { field: "reference_example", of: (r) => r.reference_example, values: IDS, spell: uuid, nullable: true },
  { field: "reference_example_id", of: (r) => r.reference_example, values: IDS, spell: uuid, nullable: true },
];

/** A condition on one field of a run. */
const plainExpression: fc.Arbitrary<Expression> = fc.constantFrom(...CHOICES).chain((choice) => {
  const { field, of, spell = spelled } = choice;
  const value = fc.constantFrom(...choice.values);
  const compared = (operators: string[], test: (operator: string, found: Scalar, value: Scalar) => boolean) =>
    fc.tuple(fc.constantFrom(...operators), value).chain(([operator, one]) =>
      spell(one).map((text) => ({
        tokens: call(operator, field, text),
        holds: (r: FilterableRun) => of(r) !== null && test(operator, of(r), one),
      })),
    );
  const list = fc.array(value, { maxLength: 3 }).chain((values) =>
    fc.tuple(...values.map(spell)).map((texts) => ({
      tokens: ["in", "(", field, ",", ...listOf(texts), ")"],
      holds: (r: FilterableRun) => values.includes(of(r)),
    })),
  );
  const ways = [compared(["eq", "neq"], (operator, found, one) => (operator === "eq") === (found === one)), list];
  if (choice.ordered) {
    ways.push(compared(Object.keys(ORDERS), (op, found, one) => ORDERS[op]?.(Number(found), Number(one)) === true));
  }
  if (choice.nullable) {
    ways.push(
      fc.constant({ tokens: call("eq", field, "null"), holds: (r) => of(r) === null }),
      fc.constant({ tokens: call("neq", field, "null"), holds: (r) => of(r) !== null }),
      fc.constant({ tokens: call("exists", field), holds: (r) => of(r) !== null }),
    );
  }
  return fc.oneof(...ways);
});

const listOf = (texts: string[]) => ["[", ...texts.flatMap((text, i) => (i ? [",", text] : [text])), "]"];

const tagOrSearch: fc.Arbitrary<Expression> = fc.oneof(
  fc.constantFrom(...NAMES).map((tag) => ({
    tokens: call("has", "tags", JSON.stringify(tag)),
    holds: (r: FilterableRun) => r.tags.includes(tag),
  })),
  fc.subarray(["alpha", "ETA", "mm"], { minLength: 1 }).map((words) => ({
    tokens: call("search", JSON.stringify(words.join("  "))),
    holds: (r: FilterableRun) => words.every((word) => r.text().toUpperCase().includes(word.toUpperCase())),
  })),
);

/** A condition on one part of an entry: how it is written, and for which entries it holds. */
interface EntryTest {
  tokens: string[];
  fits: (entry: Entry) => boolean;
}

const keyTest = (kind: Kind): fc.Arbitrary<EntryTest> =>
  fc.oneof(
    fc.constantFrom(...KEYS).map((key) => ({
      tokens: call("eq", `${kind}_key`, JSON.stringify(key)),
      fits: (entry: Entry) => entry.key === key,
    })),
    fc.subarray(KEYS).map((keys) => ({
      tokens: ["in", "(", `${kind}_key`, ",", ...listOf(keys.map((key) => `'${key}'`)), ")"],
      fits: (entry: Entry) => keys.includes(entry.key),
    })),
    fc.subarray(KEYS, { minLength: 1 }).map((keys) => ({
      tokens: orOf(keys.map((key) => call("eq", `${kind}_key`, `'${key}'`))),
      fits: (entry: Entry) => keys.includes(entry.key),
    })),
  );

const orOf = (alternatives: string[][]) => [
  "or",
  "(",
  ...alternatives.flatMap((one, i) => (i ? [",", ...one] : one)),
  ")",
];

function valueTest(kind: Kind): fc.Arbitrary<EntryTest> {
  const value = fc.constantFrom(...SCALARS).map((one) => ({
    tokens: call("eq", `${kind}_value`, JSON.stringify(one)),
    fits: (entry: Entry) => entry.value === one,
  }));
  const order = fc.tuple(fc.constantFrom(...Object.keys(ORDERS)), fc.constantFrom(0, 0.5, 7)).map(([op, limit]) => ({
    tokens: call(op, `${kind}_value`, String(limit)),
    fits: (entry: Entry) => typeof entry.value === "number" && ORDERS[op]?.(entry.value, limit) === true,
  }));
  const none = fc.constant({
    tokens: call("eq", `${kind}_value`, "null"),
    fits: (entry: Entry) => entry.value === null,
  });
  const some = fc.constant({ tokens: call("exists", `${kind}_value`), fits: (entry: Entry) => entry.value !== null });
  const score = fc.constantFrom(0, 0.5, 1).map((limit) => ({
    tokens: call("gte", "feedback_score", String(limit)),
    fits: (entry: Entry) => entry.score !== null && entry.score >= limit,
  }));
  const simple = fc.oneof(value, order, none, some, ...(kind === "feedback" ? [score] : []));
  const either = fc.array(simple, { minLength: 1, maxLength: 2 }).map((tests) => ({
    tokens: orOf(tests.map(({ tokens }) => tokens)),
    fits: (entry: Entry) => tests.some(({ fits }) => fits(entry)),
  }));
  return fc.oneof({ weight: 4, arbitrary: simple }, { weight: 1, arbitrary: either });
}

/** What stands in an `and` about one entry: arguments that may be apart, and what they mean together. */
interface Pair {
  parts: string[][];
  holds: (run: FilterableRun) => boolean;
}

const aboutOne = (kind: Kind): fc.Arbitrary<Pair> =>
  fc.tuple(keyTest(kind), fc.array(valueTest(kind), { maxLength: 2 })).map(([key, values]) => ({
    parts: [key, ...values].map(({ tokens }) => tokens),
    holds: (r) => entriesOf(r, kind).some((entry) => [key, ...values].every(({ fits }) => fits(entry))),
  }));

/** The cases of the official guide: with or without the key, with or without the value. */
const denying = (kind: Kind): fc.Arbitrary<Pair> =>
  fc
    .tuple(fc.constantFrom(...KEYS), fc.constantFrom(...SCALARS), fc.boolean(), fc.boolean())
    .map(([key, value, hasKey, hasValue]) => ({
      parts: [
        call(hasKey ? "eq" : "neq", `${kind}_key`, JSON.stringify(key)),
        call(hasValue ? "eq" : "neq", `${kind}_value`, JSON.stringify(value)),
      ],
      holds: (r) => {
        const entries = entriesOf(r, kind);
        const values = entries.filter((entry) => entry.key === key).map((entry) => entry.value);
        if (hasKey) return values.some((one) => (hasValue ? one === value : one !== null && one !== value));
        return values.length === 0 && entries.some((entry) => entry.value === value) === hasValue;
      },
    }));

const aboutAny = (kind: Kind): fc.Arbitrary<Expression> =>
  fc.oneof(keyTest(kind), valueTest(kind)).map(({ tokens, fits }) => ({
    tokens,
    holds: (r) => entriesOf(r, kind).some(fits),
  }));

const anyExpression = fc.letrec<{ node: Expression; inner: Expression }>((tie) => ({
  /** Never a condition on an entry, nor an `or` of such: in an `and` it would join what is said there. */
  inner: fc.oneof(
    { maxDepth: 4 },
    { weight: 3, arbitrary: fc.oneof({ weight: 3, arbitrary: plainExpression }, tagOrSearch) },
    {
      weight: 3,
      arbitrary: fc
        .tuple(
          fc.array(tie("inner"), { maxLength: 3 }),
          fc.array(fc.oneof(aboutOne("feedback"), denying("feedback")), { maxLength: 1 }),
          fc.array(fc.oneof(aboutOne("metadata"), denying("metadata")), { maxLength: 1 }),
          plainExpression,
          fc.infiniteStream(fc.nat()),
        )
        .map(([others, feedback, metadata, one, order]) => {
          const parts = [...others, one, ...feedback, ...metadata];
          const shuffled = parts
            .flatMap((part) => ("parts" in part ? part.parts : [part.tokens]))
            .map((tokens) => ({ tokens, at: order.next().value }))
            .sort((a, b) => a.at - b.at);
          const tokens = orOf(shuffled.map((part) => part.tokens)).with(0, "and");
          return { tokens, holds: (r: FilterableRun) => parts.every((part) => part.holds(r)) };
        }),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(plainExpression, fc.array(tie("node"), { maxLength: 3 })).map(([one, others]) => ({
        tokens: orOf([...others, one].map(({ tokens }) => tokens)),
        holds: (r: FilterableRun) => [one, ...others].some((other) => other.holds(r)),
      })),
    },
    {
      weight: 1,
      arbitrary: tie("node").map((of) => ({
        tokens: ["not", "(", ...of.tokens, ")"],
        holds: (r: FilterableRun) => !of.holds(r),
      })),
    },
  ),
  node: fc.oneof({ weight: 4, arbitrary: tie("inner") }, aboutAny("feedback"), aboutAny("metadata")),
})).node;

/** An expression that means the filter. */
function written(filter: Filter): string {
  switch (filter.op) {
    case "and":
    case "or":
      return `${filter.op}(${filter.of.map(written)})`;
    case "not":
      return `not(${written(filter.of)})`;
    case "has":
      return `has(tags, ${JSON.stringify(filter.value)})`;
    case "thread":
      return `in(thread_id, ${JSON.stringify(filter.ids)})`;
    case "search":
      return `search(${JSON.stringify(filter.words.join(" "))})`;
    case "feedback":
    case "metadata": {
      const where: (Condition<string> | { op: "or"; of: Condition<string>[] })[] = filter.where;
      const parts = where.map((one) => (one.op === "or" ? `or(${one.of.map(condition)})` : condition(one)));
      return parts.length === 1 ? (parts[0] as string) : `and(${parts})`;
    }
    default:
      return condition(filter);
  }
}

function condition(one: Condition<string>): string {
  const value = (value: Scalar) =>
    JSON.stringify(/_time$/.test(one.field) && value !== null ? `${isoOf(Number(value))}Z` : value);
  if (one.op === "exists") return `exists(${one.field})`;
  return `${one.op}(${one.field}, ${one.op === "in" ? `[${one.values.map(value)}]` : value(one.value)})`;
}

/** A filter without `and`s of one thing, which say what that thing says. */
function bare(filter: Filter): Filter {
  if (filter.op === "not") return { ...filter, of: bare(filter.of) };
  if (filter.op !== "and" && filter.op !== "or") return filter;
  const of = filter.of.map(bare);
  return filter.op === "and" && of.length === 1 ? (of[0] as Filter) : { ...filter, of };
}

describe("generated expressions", () => {
  it("hold for the runs that their parts hold for", () => {
    const answers = { true: 0, false: 0 };
    fc.assert(
      fc.property(anyExpression, fc.array(anyRun, { minLength: 4, maxLength: 4 }), ({ tokens, holds }, runs) => {
        const filter = parseFilter(tokens.join(""));
        for (const one of runs) {
          answers[`${holds(one)}`]++;
          expect(matches(filter, one)).toBe(holds(one));
        }
      }),
      { numRuns: 3000 },
    );
    // Were all answers the same, agreement would say nothing.
    expect(Math.min(answers.true, answers.false)).toBeGreaterThan(2000);
  });

  it("mean the same whatever white space is between their tokens", () => {
    fc.assert(
      fc.property(anyExpression, ({ tokens }) => {
        expect(parseFilter(` ${tokens.join(" \n\t")}\r\n`)).toEqual(parseFilter(tokens.join("")));
      }),
      { numRuns: 300 },
    );
  });

  it("come back the same when a filter is written and read again", () => {
    fc.assert(
      fc.property(anyExpression, ({ tokens }) => {
        const filter = bare(parseFilter(tokens.join("")));
        expect(bare(parseFilter(written(filter)))).toEqual(filter);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("any text", () => {
  const pieces = [
    "and",
    "or",
    "not",
    "eq",
    "in",
    "has",
    "exists",
    "search",
    "(",
    ")",
    "[",
    "]",
    ",",
    " ",
    '"',
    "'",
    "\\",
  ];
  const words = ["name", "latency", "metadata", "metadata_key", "feedback_score", "tags", '"5s"', "5", "null", "'{}'"];
  const soup = fc.array(fc.constantFrom(...pieces, ...words), { maxLength: 60 }).map((list) => list.join(""));
  const damaged = fc
    .tuple(anyExpression, fc.nat(), fc.nat({ max: 3 }), fc.string({ maxLength: 3, unit: "binary" }))
    .map(([{ tokens }, at, removed, inserted]) => {
      const text = tokens.join("");
      const from = at % text.length;
      return text.slice(0, from) + inserted + text.slice(from + removed);
    });

  it("is a filter or a FilterError with a position in the text", () => {
    let errors = 0;
    const text = fc.oneof(soup, damaged, fc.string({ unit: "binary", maxLength: 200 }), fc.string({ maxLength: 200 }));
    fc.assert(
      fc.property(text, (expression) => {
        const error = errorOf(expression);
        if (!error) return;
        errors++;
        expect(error.position).toBeGreaterThanOrEqual(0);
        expect(error.position).toBeLessThanOrEqual(expression.length);
        expect(error.message.startsWith(`At ${error.position}: `) && error.message.endsWith(".")).toBe(true);
      }),
      { numRuns: 5000 },
    );
    expect(errors).toBeGreaterThan(1000);
  });
});
