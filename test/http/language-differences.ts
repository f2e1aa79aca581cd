import { expect } from "vitest";
import { language } from "../support/language.ts";

interface Difference {
  reason: string;
  js: unknown;
  python: unknown;
}

const DIFFERENCES = {
  broken_graph: {
    reason: "The error class of the graph that does not load is one of its language.",
    js: "RangeError: this graph is broken on purpose",
    python: "RuntimeError: this graph is broken on purpose",
  },
  date: {
    reason: "JavaScript has no time zones besides UTC, and ISO 8601 of Python names the offset.",
    js: "1970-01-01T00:00:00.000Z",
    python: "1970-01-01T00:00:00+00:00",
  },
  interrupt_fields: {
    reason:
      "Interrupts of LangGraph for Python have a schema of their answer, which is null unless the graph names one.",
    js: {},
    python: { response_schema: null },
  },
  invalid_update: {
    reason: "LangGraph for Python names the value instead of the node.",
    js: expect.stringContaining("odd"),
    python: expect.stringContaining("Expected dict, got"),
  },
  node_types: {
    reason: "Drawings are those of LangChain, which for Python knows no schemas of the first and the last node.",
    js: ["schema", "runnable", "runnable", "runnable", "schema"],
    python: ["runnable", "runnable", "runnable", "runnable", undefined],
  },
  /** The values that JSON cannot hold, as `kind` of the graph `nonsense`. */
  unserializable: {
    reason:
      "JSON of Python has integers of any size. Only those of more than 64 bits in state fail, in LangGraph's serializer.",
    js: ["bigint", "circular", "emit_bigint", "emit_circular"],
    python: ["bigint", "circular", "emit_circular"],
  },
  unserializable_message: {
    reason: "The messages are those of the serializers: JSON.stringify, and ormsgpack or orjson.",
    js: /BigInt|circular|contains itself|call stack/i,
    python: /64-bit|circular|recursion limit/i,
  },
} satisfies Record<string, Difference>;

/** What an answer differs in between JavaScript and Python graphs, with the reason. Everything else is the same. */
export const expected = Object.fromEntries(
  Object.entries(DIFFERENCES).map(([name, difference]) => [name, difference[language]]),
) as { [Name in keyof typeof DIFFERENCES]: (typeof DIFFERENCES)[Name]["js"] };
