import {
  expectedFor,
  FIELDS,
  type FieldName,
  isField,
  isOtherName,
  OTHER_NAMES,
  type OtherName,
  valueFor,
} from "./fields.ts";
import type { Scalar } from "./filter.ts";
import { FilterError } from "./filter-error.ts";
import { found, type Token, type Tokens } from "./tokens.ts";

/** Calls, listed values, words to search for and keys of a metadata object, all together. */
const MAX_NODES = 1000;

/** A field, or another name, as it was written. `reference_example_id` reads as `reference_example`. */
export type Name = Token & { value: FieldName | OtherName };

/** Reads the parts of a call. Every method throws a FilterError when something else stands there. */
export class Reader {
  readonly #tokens: Tokens;
  #nodes = 0;

  constructor(tokens: Tokens) {
    this.#tokens = tokens;
  }

  /** Where the next piece begins, and what it is. It is not gone past. */
  peek(): Token {
    return this.#tokens.peek();
  }

  operator<O extends string>(operators: readonly O[]): { at: number; operator: O } {
    const token = this.#tokens.next();
    const operator = operators.find((one) => token.kind === "word" && one === token.value);
    if (operator) return { at: token.at, operator };
    const list = operators.join(", ");
    if (token.kind === "word")
      throw new FilterError(token.at, `${found(token)} is no operator; operators are ${list}.`);
    throw new FilterError(token.at, `expected an operator (${list}), found ${found(token)}.`);
  }

  name(): Name {
    const token = this.#tokens.next();
    if (token.kind !== "word") {
      throw new FilterError(token.at, `expected a field, written without quotes, found ${found(token)}.`);
    }
    const value = token.value === "reference_example_id" ? "reference_example" : token.value;
    if (isField(value) || isOtherName(value)) return { ...token, value };
    const names = [...Object.keys(FIELDS), ...OTHER_NAMES].join(", ");
    throw new FilterError(token.at, `${found(token)} is no field of a run; fields are ${names}.`);
  }

  /** A value, as its field means it. */
  value(field: FieldName): Scalar {
    const token = this.#tokens.next();
    const written = token.kind === "text" ? token.value : literalOf(token);
    const value = written === undefined ? undefined : valueFor(field, written);
    if (value !== undefined) return value;
    throw new FilterError(token.at, `${field} takes ${expectedFor(field)}; found ${found(token)}.`);
  }

  text(expected: string): Token {
    const token = this.#tokens.next();
    if (token.kind === "text") return token;
    throw new FilterError(token.at, `expected ${expected}, found ${found(token)}.`);
  }

  /** A list in brackets, which may be empty. */
  list<T>(read: () => T): T[] {
    this.mark("[");
    const counted = () => {
      this.count(this.peek().at);
      return read();
    };
    const items = this.#sees("]") ? [] : this.separated(counted);
    this.mark("]");
    return items;
  }

  /** One or more of something, with commas between. */
  separated<T>(read: () => T): T[] {
    const items = [read()];
    while (this.#sees(",")) {
      this.#tokens.next();
      items.push(read());
    }
    return items;
  }

  mark(mark: string): void {
    const token = this.peek();
    if (!this.#sees(mark)) throw new FilterError(token.at, `expected "${mark}", found ${found(token)}.`);
    this.#tokens.next();
  }

  end(): void {
    const token = this.#tokens.next();
    if (token.kind !== "end") throw new FilterError(token.at, `expected the end, found ${found(token)}.`);
  }

  /** Counts one more thing that costs something wherever the filter is used. */
  count(at: number): void {
    if (++this.#nodes > MAX_NODES) throw new FilterError(at, `a filter has at most ${MAX_NODES} calls and values.`);
  }

  #sees(mark: string): boolean {
    const { kind, value } = this.peek();
    return kind === "mark" && value === mark;
  }
}

/** Python's spellings too (`True`, `None`): its users build expressions with f-strings. */
const CONSTANTS = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
  ["none", null],
]);

/** Each digit can be matched in one way only: with `\d+\.?\d*`, 20,000 digits and a letter took a second. */
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/** A number, true, false or null. */
function literalOf({ kind, value }: Token): number | boolean | null | undefined {
  if (kind !== "word") return undefined;
  const constant = CONSTANTS.get(value.toLowerCase());
  if (constant !== undefined) return constant;
  if (!NUMBER.test(value)) return undefined;
  return Number.isFinite(Number(value)) ? Number(value) : undefined;
}
