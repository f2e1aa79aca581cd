import type { Scalar } from "../storage/run-filter.ts";
import {
  expectedLiteral,
  FIELDS,
  type FieldName,
  isField,
  isPseudoField,
  PSEUDO_FIELDS,
  type PseudoField,
  toFieldValue,
} from "./fields.ts";

/** A syntax error in a filter expression. */
export class FilterError extends Error {
  /** The offset in the expression in UTF-16 code units, from 0. */
  readonly position: number;

  constructor(position: number, message: string) {
    super(`At ${position}: ${message}`);
    this.name = "FilterError";
    this.position = position;
  }
}

/** Quotes part of an expression in an error, on one line and with at most 40 characters. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}

/** A word is a name, a number, true, false or null. Punctuation is one of `( ) [ ] ,`. The value of a `text` token excludes the quotes. */
export interface Token {
  kind: "word" | "text" | "punctuation" | "end";
  value: string;
  at: number;
}

const SPACE = /\s*/y;
const WORD = /[\w.+-]+/y;
const PUNCTUATION = "()[],";

export function describeToken(token: Token): string {
  if (token.kind === "end") return "the end";
  return token.kind === "text" ? `the string ${quoted(token.value)}` : quoted(token.value);
}

/** Strings in single quotes have no escapes, as in the official grammar, so they can contain JSON. */
function plainText(text: string, at: number): { value: string; end: number } {
  const end = text.indexOf("'", at + 1);
  if (end < 0) throw unterminated(at);
  return { value: text.slice(at + 1, end), end: end + 1 };
}

const ESCAPES: Record<string, string> = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Strings in double quotes have the escapes of JSON, because the official clients serialize ids as JSON. */
function escapedText(text: string, at: number): { value: string; end: number } {
  let value = "";
  for (let i = at + 1; i < text.length; i++) {
    const char = text[i] as string;
    if (char === '"') return { value, end: i + 1 };
    if (char !== "\\") {
      value += char;
      continue;
    }
    const sequence = /^\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))/.exec(text.slice(i, i + 6));
    if (!sequence)
      throw new FilterError(
        i,
        `the escape sequence that starts with ${text.slice(i, i + 2)} is not valid; write two backslashes for one backslash.`,
      );
    value += sequence[1] ? ESCAPES[sequence[1]] : String.fromCharCode(Number.parseInt(sequence[2] as string, 16));
    i += sequence[0].length - 1;
  }
  throw unterminated(at);
}

const unterminated = (at: number) => new FilterError(at, "the string has no closing quote.");

/** The maximum total of calls, list values, search words and metadata keys. */
const MAX_NODES = 1000;

/** A field name in a filter. `reference_example_id` is replaced by `reference_example`. */
export type Name = Token & { value: FieldName | PseudoField };

/** Reads the tokens of a filter expression on demand, so that the first FilterError is the leftmost. */
export class FilterReader {
  readonly #text: string;
  #at = 0;
  #next: Token | undefined;
  #nodes = 0;

  constructor(text: string) {
    this.#text = text;
  }

  peek(): Token {
    this.#next ??= this.#read();
    return this.#next;
  }

  #take(): Token {
    const token = this.peek();
    this.#next = undefined;
    return token;
  }

  operator<O extends string>(operators: readonly O[]): { at: number; operator: O } {
    const token = this.#take();
    const operator = operators.find((name) => token.kind === "word" && name === token.value);
    if (operator) return { at: token.at, operator };
    const list = operators.join(", ");
    if (token.kind === "word")
      throw new FilterError(token.at, `${describeToken(token)} is not an operator; the operators are ${list}.`);
    throw new FilterError(token.at, `expected an operator (${list}), found ${describeToken(token)}.`);
  }

  name(): Name {
    const token = this.#take();
    if (token.kind !== "word") {
      throw new FilterError(token.at, `expected a field name without quotes, found ${describeToken(token)}.`);
    }
    const value = token.value === "reference_example_id" ? "reference_example" : token.value;
    if (isField(value) || isPseudoField(value)) return { ...token, value };
    const names = [...Object.keys(FIELDS), ...PSEUDO_FIELDS].join(", ");
    throw new FilterError(token.at, `${describeToken(token)} is not a field of a run; the fields are ${names}.`);
  }

  value(field: FieldName): Scalar {
    const token = this.#take();
    const literal = token.kind === "text" ? token.value : literalOf(token);
    const value = literal === undefined ? undefined : toFieldValue(field, literal);
    if (value !== undefined) return value;
    throw new FilterError(token.at, `${field} requires ${expectedLiteral(field)}; found ${describeToken(token)}.`);
  }

  text(expected: string): Token {
    const token = this.#take();
    if (token.kind === "text") return token;
    throw new FilterError(token.at, `expected ${expected}, found ${describeToken(token)}.`);
  }

  list<T>(read: () => T): T[] {
    this.punctuation("[");
    const readItem = () => {
      this.countNode(this.peek().at);
      return read();
    };
    const items = this.#isNext("]") ? [] : this.separated(readItem);
    this.punctuation("]");
    return items;
  }

  separated<T>(read: () => T): T[] {
    const items = [read()];
    while (this.#isNext(",")) {
      this.#take();
      items.push(read());
    }
    return items;
  }

  punctuation(mark: string): void {
    const token = this.peek();
    if (!this.#isNext(mark)) throw new FilterError(token.at, `expected "${mark}", found ${describeToken(token)}.`);
    this.#take();
  }

  end(): void {
    const token = this.#take();
    if (token.kind !== "end")
      throw new FilterError(token.at, `expected the end of the filter, found ${describeToken(token)}.`);
  }

  countNode(at: number): void {
    if (++this.#nodes > MAX_NODES)
      throw new FilterError(
        at,
        `the filter has more than ${MAX_NODES} calls, list values, search words and metadata keys in total.`,
      );
  }

  #isNext(mark: string): boolean {
    const { kind, value } = this.peek();
    return kind === "punctuation" && value === mark;
  }

  #read(): Token {
    const text = this.#text;
    this.#skip(SPACE);
    const at = this.#at;
    if (at === text.length) return { kind: "end", value: "", at };
    const first = text[at] as string;
    if (PUNCTUATION.includes(first)) {
      this.#at++;
      return { kind: "punctuation", value: first, at };
    }
    if (first === '"' || first === "'") {
      const { value, end } = first === '"' ? escapedText(text, at) : plainText(text, at);
      this.#at = end;
      // Postgres stores neither NUL nor unpaired surrogates.
      return { kind: "text", value: value.replaceAll("\0", "\ufffd").toWellFormed(), at };
    }
    const word = this.#skip(WORD);
    if (word !== "") return { kind: "word", value: word, at };
    throw new FilterError(
      at,
      `${quoted(String.fromCodePoint(text.codePointAt(at) as number))} is not part of the filter syntax.`,
    );
  }

  /** @param pattern a sticky pattern */
  #skip(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [match] = pattern.exec(this.#text) ?? [""];
    this.#at += match.length;
    return match;
  }
}

/** Compared in lower case: f-strings in Python yield `True` and `None`. */
const CONSTANTS = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
  ["none", null],
]);

/** Matches each digit in one way only, which avoids quadratic backtracking (1 s for 20,000 digits). */
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

function literalOf({ kind, value }: Token): number | boolean | null | undefined {
  if (kind !== "word") return undefined;
  const constant = CONSTANTS.get(value.toLowerCase());
  if (constant !== undefined) return constant;
  if (!NUMBER.test(value)) return undefined;
  return Number.isFinite(Number(value)) ? Number(value) : undefined;
}
