import { ApiError } from "../../platform/errors.ts";
import { isObject, JsonError, parseUntrusted } from "../../platform/lib/json/json.ts";
import type { Comparator, RunFilter, Scalar } from "../storage/run-filter.ts";
import { type FieldName, hasOrder, isField, orderedFields } from "./fields.ts";
import { describeToken, FilterError, FilterReader, type Name, quoted, type Token } from "./filter-reader.ts";
import { groupEntries, type ParsedExpression, toExpression } from "./group-entries.ts";

/** In UTF-16 code units. */
const MAX_LENGTH = 20_000;
const MAX_DEPTH = 32;

const OPERATORS = ["and", "or", "not", "eq", "neq", "gt", "gte", "lt", "lte", "in", "has", "exists", "search"] as const;

type Operator = (typeof OPERATORS)[number];

/**
 * Parses a filter expression of the official clients, for example
 * `and(eq(feedback_key, "correctness"), lt(feedback_score, 0.5))`. Rules that the official description does not specify:
 *
 * - `latency` accepts seconds or a string with a unit. The default time zone is UTC. `error` also accepts true and false.
 * - `exists(metadata, "k")` and `has(metadata, '{"k": 1}')` match metadata entries. `eq(thread_id, "t")`, which `readThread` of
 *   the clients sends, matches the thread of the run.
 * - `ls_model_name` is the metadata entry of this name.
 * - `search` has no field.
 *
 * @throws FilterError with the position of the first error
 */
export function parseFilter(text: string): RunFilter {
  if (text.length > MAX_LENGTH) {
    throw new FilterError(MAX_LENGTH, `the filter has ${text.length} characters; the maximum is ${MAX_LENGTH}.`);
  }
  const reader = new FilterReader(text);
  const parsed = readCall(reader, 1);
  reader.end();
  return groupEntries(parsed);
}

function readCall(reader: FilterReader, depth: number): ParsedExpression {
  const { at, operator } = reader.operator(OPERATORS);
  if (depth > MAX_DEPTH) throw new FilterError(at, `calls are nested more than ${MAX_DEPTH} levels deep.`);
  reader.countNode(at);
  reader.punctuation("(");
  const parsed = readArguments(reader, operator, at, depth);
  reader.punctuation(")");
  return parsed;
}

function readArguments(reader: FilterReader, operator: Operator, at: number, depth: number): ParsedExpression {
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

function readComparison(reader: FilterReader, op: Comparator, at: number): ParsedExpression {
  const name = reader.name();
  const ordered = op !== "eq" && op !== "neq";
  if (isTextName(name.value) && !ordered) {
    reader.punctuation(",");
    const found = textFilter(name.value, [reader.text(EXPECTED[name.value]).value]);
    return plain(at, op === "eq" ? found : { op: "not", of: found });
  }
  const field = fieldFor(op, name);
  if (ordered && !hasOrder(field)) throw unsupported(op, name, `${op} can be used only with ${orderedFields()}`);
  reader.punctuation(",");
  const token = reader.peek();
  const value = reader.value(field);
  if (ordered && typeof value !== "number") {
    throw new FilterError(token.at, `${op} cannot compare ${field} with ${describeToken(token)}.`);
  }
  if (field !== "error" || typeof value !== "boolean") return toExpression(at, { op, field, value });
  return toExpression(at, { op: (op === "eq") === value ? "neq" : "eq", field, value: null });
}

function readIn(reader: FilterReader, at: number): ParsedExpression {
  const name = reader.name();
  if (isTextName(name.value)) {
    const { value } = name;
    reader.punctuation(",");
    return plain(
      at,
      textFilter(
        value,
        reader.list(() => reader.text(EXPECTED[value]).value),
      ),
    );
  }
  const field = fieldFor("in", name);
  reader.punctuation(",");
  return toExpression(at, { op: "in", field, values: reader.list(() => readListed(reader, field)) });
}

function readListed(reader: FilterReader, field: FieldName): Scalar {
  const token = reader.peek();
  const value = reader.value(field);
  if (value !== null && (field !== "error" || typeof value === "string")) return value;
  throw new FilterError(
    token.at,
    `${describeToken(token)} cannot be used in a list; use eq(${field}, ${token.value}).`,
  );
}

/** Pseudo-fields that accept only a string, each with the description of that string for error messages. */
const EXPECTED = { thread_id: "a quoted thread ID", ls_model_name: "a quoted model name" };

const isTextName = (name: string): name is keyof typeof EXPECTED => Object.hasOwn(EXPECTED, name);

const textFilter = (name: keyof typeof EXPECTED, values: string[]): RunFilter =>
  name === "thread_id"
    ? { op: "thread", ids: values }
    : {
        op: "metadata",
        where: [
          { op: "eq", field: "metadata_key", value: name },
          { op: "in", field: "metadata_value", values },
        ],
      };

function readExists(reader: FilterReader, at: number): ParsedExpression {
  const name = reader.name();
  if (name.value !== "metadata") {
    const field = name.value === "tags" ? "tags" : fieldFor("exists", name);
    return toExpression(at, { op: "exists", field });
  }
  reader.punctuation(",");
  const { value } = reader.text("a quoted key");
  return plain(at, { op: "metadata", where: [{ op: "eq", field: "metadata_key", value }] });
}

function readHas(reader: FilterReader): RunFilter {
  const name = reader.name();
  if (name.value !== "tags" && name.value !== "metadata") {
    throw unsupported("has", name, `use has(tags, "a") or has(metadata, '{"k": "v"}')`);
  }
  reader.punctuation(",");
  if (name.value === "metadata") return entriesIn(reader.text("a quoted JSON object"), reader);
  return { op: "has", field: "tags", value: reader.text("a quoted tag").value };
}

function entriesIn(text: Token, reader: FilterReader): RunFilter {
  const entries = Object.entries(objectIn(text)).map(([key, value]): RunFilter => {
    reader.countNode(text.at);
    if (!isScalar(value)) {
      throw new FilterError(text.at, `the value of ${quoted(key)} must be a string, a number, true, false or null.`);
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
  return entries.length === 1 ? (entries[0] as RunFilter) : { op: "and", of: entries };
}

function objectIn(text: Token): Record<string, unknown> {
  try {
    const value = parseUntrusted(text.value);
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
  }
  throw new FilterError(text.at, `expected a JSON object such as {"k": "v"}, found ${describeToken(text)}.`);
}

const isScalar = (value: unknown): value is Scalar =>
  value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);

function readWords(reader: FilterReader): string[] {
  const text = reader.text("a quoted string (search takes no field)");
  const words = wordsOf(text.value);
  if (words.length === 0) throw new FilterError(text.at, "expected at least one word to search for.");
  for (const _ of words) reader.countNode(text.at);
  return words;
}

const wordsOf = (text: string): string[] => text.toLowerCase().split(/\s+/).filter(Boolean);

const plain = (at: number, filter: RunFilter): ParsedExpression => ({ op: "plain", at, filter });

function fieldFor(op: Operator, name: Name): FieldName {
  if (name.value === "tags") throw unsupported(op, name, 'tags are a list; use has(tags, "a")');
  if (name.value === "metadata") throw unsupported(op, name, "use metadata_key and metadata_value");
  if (isField(name.value)) return name.value;
  throw unsupported(op, name, `use eq, neq or in, for example eq(${name.value}, "t")`);
}

const unsupported = (op: Operator, name: Name, advice: string) =>
  new FilterError(name.at, `${op} does not support ${name.value}: ${advice}.`);

/** Each word is searched for in several texts of each run. */
const MAX_WORDS = 100;

/** @throws ApiError 400 with the position and the reason of a syntax error, or for too many words */
export function readFilters(expressions: readonly (string | undefined)[], words = ""): RunFilter[] {
  const searchWords = [...new Set(wordsOf(words))];
  if (searchWords.length > MAX_WORDS) {
    const reason = `The text to search for has ${searchWords.length} different words; the maximum is ${MAX_WORDS}.`;
    throw new ApiError("bad_filter", { reason });
  }
  const filters = expressions.flatMap((text) => (text === undefined || text.trim() === "" ? [] : parse(text)));
  return searchWords.length > 0 ? [...filters, { op: "search", words: searchWords }] : filters;
}

/** @throws ApiError 400 for a syntax error, or for a field that only runs have */
export function readExampleFilters(expression: string | undefined): RunFilter[] {
  const filters = readFilters([expression]);
  const field = filters.map(runField).find((found) => found !== undefined);
  if (field === undefined) return filters;
  const reason = `The filter is invalid: ${field} is a field of runs, but examples can be filtered only by metadata and text.`;
  throw new ApiError("bad_filter", { reason });
}

/** Returns the first field in a filter that only runs have. */
function runField(filter: RunFilter): string | undefined {
  switch (filter.op) {
    case "and":
    case "or":
      return filter.of.map(runField).find((found) => found !== undefined);
    case "not":
      return runField(filter.of);
    case "feedback":
      return "feedback";
    case "metadata":
    case "thread":
    case "search":
      return undefined;
    default:
      return filter.field;
  }
}

function parse(text: string): RunFilter {
  try {
    return parseFilter(text);
  } catch (error) {
    if (error instanceof FilterError)
      throw new ApiError("bad_filter", { reason: `The filter is invalid. ${error.message}` });
    throw error;
  }
}
