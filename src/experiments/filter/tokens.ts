import { FilterError, quoted } from "./filter-error.ts";

/**
 * A piece of an expression. A word is a name, a number, true, false or null; a text stood in quotes, and `value` is what
 * it says; a mark is one of `( ) [ ] ,`; the end comes last, and again each time one asks.
 */
export interface Token {
  kind: "word" | "text" | "mark" | "end";
  value: string;
  at: number;
}

const SPACE = /\s*/y;
const WORD = /[\w.+-]+/y;
const MARKS = "()[],";

/** Reads an expression piece by piece, so that the first error is the one furthest to the left. */
export class Tokens {
  readonly #text: string;
  #at = 0;
  #ahead: Token | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  /** @throws FilterError where the text is no piece of an expression */
  peek(): Token {
    this.#ahead ??= this.#read();
    return this.#ahead;
  }

  /** @throws FilterError where the text is no piece of an expression */
  next(): Token {
    const token = this.peek();
    this.#ahead = undefined;
    return token;
  }

  #read(): Token {
    const text = this.#text;
    this.#skip(SPACE);
    const at = this.#at;
    if (at === text.length) return { kind: "end", value: "", at };
    const first = text[at] as string;
    if (MARKS.includes(first)) {
      this.#at++;
      return { kind: "mark", value: first, at };
    }
    if (first === '"' || first === "'") {
      const { value, end } = first === '"' ? escapedText(text, at) : plainText(text, at);
      this.#at = end;
      // As in every text that comes in: Postgres can hold neither, so no stored text has them.
      return { kind: "text", value: value.replaceAll("\0", "\ufffd").toWellFormed(), at };
    }
    const word = this.#skip(WORD);
    if (word !== "") return { kind: "word", value: word, at };
    throw new FilterError(at, `${quoted(String.fromCodePoint(text.codePointAt(at) as number))} has no meaning here.`);
  }

  /** Goes past what `pattern` (sticky) matches, which may be nothing. */
  #skip(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [""];
    this.#at += found.length;
    return found;
  }
}

/** How an error names a piece that was not expected. */
export function found(token: Token): string {
  if (token.kind === "end") return "the end";
  return token.kind === "text" ? `the text ${quoted(token.value)}` : quoted(token.value);
}

/**
 * A text in single quotes has no escapes. So it is in the official grammar (`'[^']*'`), and thus a JSON object with
 * escapes of its own can stand in it.
 */
function plainText(text: string, at: number): { value: string; end: number } {
  const end = text.indexOf("'", at + 1);
  if (end < 0) throw unclosed(at);
  return { value: text.slice(at + 1, end), end: end + 1 };
}

const ESCAPES: Record<string, string> = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** A text in double quotes has the escapes of JSON: both official clients write ids with their JSON serialiser. */
function escapedText(text: string, at: number): { value: string; end: number } {
  let value = "";
  for (let i = at + 1; i < text.length; i++) {
    const char = text[i] as string;
    if (char === '"') return { value, end: i + 1 };
    if (char !== "\\") {
      value += char;
      continue;
    }
    const written = /^\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))/.exec(text.slice(i, i + 6));
    if (!written)
      throw new FilterError(i, `${quoted(text.slice(i, i + 2))} is no escape; a backslash is written "\\\\".`);
    value += written[1] ? ESCAPES[written[1]] : String.fromCharCode(Number.parseInt(written[2] as string, 16));
    i += written[0].length - 1;
  }
  throw unclosed(at);
}

const unclosed = (at: number) => new FilterError(at, "this text has no closing quote.");
