import { isObject, JsonError, parseUntrusted } from "../../platform/lib/json/json.ts";
import { type FieldName, hasOrder, isField, orderedFields } from "./fields.ts";
import type { Comparator, Filter, Scalar } from "./filter.ts";
import { FilterError, quoted } from "./filter-error.ts";
import { conditionOn, type Parsed, withPairs } from "./pairs.ts";
import { type Name, Reader } from "./reader.ts";
import { found, type Token, Tokens } from "./tokens.ts";

/** In UTF-16 units, as a text's `length` counts. */
const MAX_LENGTH = 20_000;
/** Calls within calls. */
const MAX_DEPTH = 32;

const OPERATORS = ["and", "or", "not", "eq", "neq", "gt", "gte", "lt", "lte", "in", "has", "exists", "search"] as const;

type Operator = (typeof OPERATORS)[number];

/**
 * Reads a filter expression of the official clients: calls of {@link OPERATORS} on fields and values, such as
 * `and(eq(feedback_key, "correctness"), lt(feedback_score, 0.5))`. Where the published description ends, the rules are
 * ours:
 *
 * - `latency` takes seconds or a text with a unit; a time without an offset is UTC; `error` takes true and false for
 *   "has one" and "has none".
 * - `exists(metadata, "k")` and `has(metadata, '{"k": 1}')` ask for entries, `eq(thread_id, "t")` for the metadata of a
 *   thread (the clients' `readThread` sends it).
 * - `search` takes no field, as on the official service.
 *
 * @throws FilterError naming the first place that is wrong
 */
export function parseFilter(text: string): Filter {
  if (text.length > MAX_LENGTH) {
    throw new FilterError(MAX_LENGTH, `a filter has at most ${MAX_LENGTH} characters; this one has ${text.length}.`);
  }
  const reader = new Reader(new Tokens(text));
  const parsed = readCall(reader, 1);
  reader.end();
  return withPairs(parsed);
}

function readCall(reader: Reader, depth: number): Parsed {
  const { at, operator } = reader.operator(OPERATORS);
  if (depth > MAX_DEPTH) throw new FilterError(at, `calls are nested more than ${MAX_DEPTH} deep.`);
  reader.count(at);
  reader.mark("(");
  const parsed = readArguments(reader, operator, at, depth);
  reader.mark(")");
  return parsed;
}

function readArguments(reader: Reader, operator: Operator, at: number, depth: number): Parsed {
  switch (operator) {
    case "and":
    case "or":
      return { op: operator, at, of: reader.separated(() => readCall(reader, depth + 1)) };
    case "not":
      return { op: "not", at, of: readCall(reader, depth + 1) };
    case "search":
      return plain(at, { op: "search", words: readWords(reader) });
    case "has":
      return plain(at, readHas(reader));
    case "exists":
      return readExists(reader, at);
    case "in":
      return readIn(reader, at);
    default:
      return readComparison(reader, operator, at);
  }
}

function readComparison(reader: Reader, op: Comparator, at: number): Parsed {
  const name = reader.name();
  const ordered = op !== "eq" && op !== "neq";
  if (name.value === "thread_id" && !ordered) return readThread(reader, op, at);
  const field = fieldFor(op, name);
  if (ordered && !hasOrder(field)) throw unfit(op, name, `fields with an order are ${orderedFields()}`);
  reader.mark(",");
  const token = reader.peek();
  const value = reader.value(field);
  if (ordered && typeof value !== "number") {
    throw new FilterError(token.at, `${op} compares numbers and times, and ${found(token)} has no such order.`);
  }
  if (field !== "error" || typeof value !== "boolean") return conditionOn(at, { op, field, value });
  return conditionOn(at, { op: (op === "eq") === value ? "neq" : "eq", field, value: null });
}

function readIn(reader: Reader, at: number): Parsed {
  const name = reader.name();
  const field = name.value === "thread_id" ? undefined : fieldFor("in", name);
  reader.mark(",");
  if (field) return conditionOn(at, { op: "in", field, values: reader.list(() => readListed(reader, field)) });
  const values = reader.list(() => reader.text(THREAD_ID).value);
  return plain(at, inThread({ op: "in", field: "metadata_value", values }));
}

function readListed(reader: Reader, field: FieldName): Scalar {
  const token = reader.peek();
  const value = reader.value(field);
  if (value !== null && (field !== "error" || typeof value === "string")) return value;
  throw new FilterError(token.at, `${found(token)} cannot stand in a list; write eq(${field}, ${token.value}).`);
}

const THREAD_ID = "the id of a thread in quotes";

function readThread(reader: Reader, op: "eq" | "neq", at: number): Parsed {
  reader.mark(",");
  const thread = inThread({ op: "eq", field: "metadata_value", value: reader.text(THREAD_ID).value });
  return plain(at, op === "eq" ? thread : { op: "not", of: thread });
}

/** The official service finds the thread of a run by any of these three metadata keys. */
function inThread(value: (Filter & { op: "metadata" })["where"][number]): Filter {
  const keys = ["session_id", "conversation_id", "thread_id"];
  return { op: "metadata", where: [{ op: "in", field: "metadata_key", values: keys }, value] };
}

function readExists(reader: Reader, at: number): Parsed {
  const name = reader.name();
  if (name.value !== "metadata") {
    const field = name.value === "tags" ? "tags" : fieldFor("exists", name);
    return conditionOn(at, { op: "exists", field });
  }
  reader.mark(",");
  const { value } = reader.text("a key in quotes");
  return plain(at, { op: "metadata", where: [{ op: "eq", field: "metadata_key", value }] });
}

function readHas(reader: Reader): Filter {
  const name = reader.name();
  if (name.value !== "tags" && name.value !== "metadata") {
    throw unfit("has", name, `write has(tags, "a") or has(metadata, '{"k": "v"}')`);
  }
  reader.mark(",");
  if (name.value === "metadata") return entriesIn(reader.text("a JSON object in quotes"), reader);
  return { op: "has", field: "tags", value: reader.text("a tag in quotes").value };
}

/** The metadata object of a `has`: each of its keys is there, and has just this value. */
function entriesIn(text: Token, reader: Reader): Filter {
  const entries = Object.entries(objectIn(text)).map(([key, value]): Filter => {
    reader.count(text.at);
    if (!isScalar(value)) {
      throw new FilterError(text.at, `the value of ${quoted(key)} must be a text, a number, true, false or null.`);
    }
    return {
      op: "metadata",
      where: [
        { op: "eq", field: "metadata_key", value: key },
        { op: "eq", field: "metadata_value", value },
      ],
    };
  });
  if (entries.length === 0) throw new FilterError(text.at, "expected a JSON object with at least one key.");
  return entries.length === 1 ? (entries[0] as Filter) : { op: "and", of: entries };
}

function objectIn(text: Token): Record<string, unknown> {
  try {
    const value = parseUntrusted(text.value);
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
  }
  throw new FilterError(text.at, `expected a JSON object such as {"k": "v"}, found ${found(text)}.`);
}

const isScalar = (value: unknown): value is Scalar =>
  value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);

function readWords(reader: Reader): string[] {
  const text = reader.text("what to search for, as a text in quotes (search takes no field)");
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) throw new FilterError(text.at, "expected at least one word to search for.");
  for (const _ of words) reader.count(text.at);
  return words;
}

const plain = (at: number, filter: Filter): Parsed => ({ op: "plain", at, filter });

/** The one field that a name stands for. */
function fieldFor(op: Operator, name: Name): FieldName {
  if (name.value === "tags") throw unfit(op, name, 'tags are a list, write has(tags, "a")');
  if (name.value === "metadata") throw unfit(op, name, "write metadata_key and metadata_value");
  if (isField(name.value)) return name.value;
  throw unfit(op, name, `write eq(thread_id, "t"), neq or in`);
}

const unfit = (op: Operator, name: Name, advice: string) =>
  new FilterError(name.at, `${op} cannot be asked of ${name.value}: ${advice}.`);
