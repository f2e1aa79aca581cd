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

/** A syntax error in a filter expression. The message has the position, the expected input and the actual input. */
export class FilterError extends Error {
  /** The offset in the expression in UTF-16 code units, from 0. */
  readonly position: number;

  constructor(position: number, message: string) {
    super(`At ${position}: ${message}`);
    this.name = "FilterError";
    this.position = position;
  }
}

/** Quotes a part of an expression in an error: on one line, with at most 40 characters. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}

/**
 * A word is a name, a number, true, false or null. The `value` of a text is its content without quotes. Punctuation is one of
 * `( ) [ ] ,`. The tokens after the last are all `end`.
 */
export interface Token {
  kind: "word" | "text" | "punctuation" | "end";
  value: string;
  at: number;
}

const SPACE = /\s*/y;
const WORD = /[\w.+-]+/y;
const PUNCTUATION = "()[],";

/** Reads tokens on demand, so that the first error is the leftmost. */
export class Tokens {
  readonly #text: string;
  #at = 0;
  #next: Token | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /** @throws FilterError when the next characters are not a token */
  peek(): Token {
    this.#next ??= this.#read();
    return this.#next;
  }

  /** @throws FilterError when the next characters are not a token */
  next(): Token {
    const token = this.peek();
    this.#next = undefined;
    return token;
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
      // As in all input: Postgres stores neither NUL nor unpaired surrogates.
      return { kind: "text", value: value.replaceAll("\0", "\ufffd").toWellFormed(), at };
    }
    const word = this.#skip(WORD);
    if (word !== "") return { kind: "word", value: word, at };
    throw new FilterError(
      at,
      `${quoted(String.fromCodePoint(text.codePointAt(at) as number))} is not part of the filter syntax.`,
    );
  }

  /** @param pattern a sticky pattern that also matches the empty text */
  #skip(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [match] = pattern.exec(this.#text) ?? [""];
    this.#at += match.length;
    return match;
  }
}

/** Describes an unexpected token in an error. */
export function describeToken(token: Token): string {
  if (token.kind === "end") return "the end";
  return token.kind === "text" ? `the text ${quoted(token.value)}` : quoted(token.value);
}

/** Texts in single quotes have no escapes, as in the official grammar (`'[^']*'`): they can contain JSON with escapes. */
function plainText(text: string, at: number): { value: string; end: number } {
  const end = text.indexOf("'", at + 1);
  if (end < 0) throw unterminated(at);
  return { value: text.slice(at + 1, end), end: end + 1 };
}

const ESCAPES: Record<string, string> = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Texts in double quotes have the escapes of JSON: both official clients serialize ids as JSON. */
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
        `${quoted(text.slice(i, i + 2))} is not an escape sequence; write "\\\\" for a backslash.`,
      );
    value += sequence[1] ? ESCAPES[sequence[1]] : String.fromCharCode(Number.parseInt(sequence[2] as string, 16));
    i += sequence[0].length - 1;
  }
  throw unterminated(at);
}

const unterminated = (at: number) => new FilterError(at, "the text has no closing quote.");

/** The maximum total of calls, list values, search words and metadata keys. */
const MAX_NODES = 1000;

/** `reference_example_id` becomes `reference_example`. */
export type Name = Token & { value: FieldName | PseudoField };

/** Reads the parts of a call. Every method throws a FilterError for unexpected input. */
export class ArgumentReader {
  readonly #tokens: Tokens;
  #nodes = 0;

  constructor(tokens: Tokens) {
    this.#tokens = tokens;
  }

  peek(): Token {
    return this.#tokens.peek();
  }

  operator<O extends string>(operators: readonly O[]): { at: number; operator: O } {
    const token = this.#tokens.next();
    const operator = operators.find((name) => token.kind === "word" && name === token.value);
    if (operator) return { at: token.at, operator };
    const list = operators.join(", ");
    if (token.kind === "word")
      throw new FilterError(token.at, `${describeToken(token)} is not an operator; the operators are ${list}.`);
    throw new FilterError(token.at, `expected an operator (${list}), found ${describeToken(token)}.`);
  }

  name(): Name {
    const token = this.#tokens.next();
    if (token.kind !== "word") {
      throw new FilterError(token.at, `expected a field without quotes, found ${describeToken(token)}.`);
    }
    const value = token.value === "reference_example_id" ? "reference_example" : token.value;
    if (isField(value) || isPseudoField(value)) return { ...token, value };
    const names = [...Object.keys(FIELDS), ...PSEUDO_FIELDS].join(", ");
    throw new FilterError(token.at, `${describeToken(token)} is not a field of a run; the fields are ${names}.`);
  }

  /** A value in the unit of the field. */
  value(field: FieldName): Scalar {
    const token = this.#tokens.next();
    const literal = token.kind === "text" ? token.value : literalOf(token);
    const value = literal === undefined ? undefined : toFieldValue(field, literal);
    if (value !== undefined) return value;
    throw new FilterError(token.at, `${field} requires ${expectedLiteral(field)}; found ${describeToken(token)}.`);
  }

  text(expected: string): Token {
    const token = this.#tokens.next();
    if (token.kind === "text") return token;
    throw new FilterError(token.at, `expected ${expected}, found ${describeToken(token)}.`);
  }

  /** A list in brackets, possibly empty. */
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

  /** One or more items, separated by commas. */
  separated<T>(read: () => T): T[] {
    const items = [read()];
    while (this.#isNext(",")) {
      this.#tokens.next();
      items.push(read());
    }
    return items;
  }

  punctuation(mark: string): void {
    const token = this.peek();
    if (!this.#isNext(mark)) throw new FilterError(token.at, `expected "${mark}", found ${describeToken(token)}.`);
    this.#tokens.next();
  }

  end(): void {
    const token = this.#tokens.next();
    if (token.kind !== "end")
      throw new FilterError(token.at, `expected the end of the filter, found ${describeToken(token)}.`);
  }

  countNode(at: number): void {
    if (++this.#nodes > MAX_NODES) throw new FilterError(at, `a filter has at most ${MAX_NODES} calls and values.`);
  }

  #isNext(mark: string): boolean {
    const { kind, value } = this.peek();
    return kind === "punctuation" && value === mark;
  }
}

/** Compared in lower case: Python users build expressions with f-strings, which yield `True` and `None`. */
const CONSTANTS = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
  ["none", null],
]);

/** Matches each digit in one way only: with `\d+\.?\d*`, 20,000 digits and a letter took 1 s. */
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/** A number, true, false or null. */
function literalOf({ kind, value }: Token): number | boolean | null | undefined {
  if (kind !== "word") return undefined;
  const constant = CONSTANTS.get(value.toLowerCase());
  if (constant !== undefined) return constant;
  if (!NUMBER.test(value)) return undefined;
  return Number.isFinite(Number(value)) ? Number(value) : undefined;
}
