/** The error in a JSON text. The position counts code points. */
export interface JsonFault {
  position: number;
  reason: string;
}

/** Finds the error in a JSON text of limited depth. Its message and position are those of Python's decoder, which FastAPI reports. */
export function faultOf(text: string): JsonFault | undefined {
  const scanner = new Scanner(text);
  try {
    scanner.document();
    return undefined;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { position: charactersIn(text, error.index), reason: error.message };
  }
}

/** Returns the number of code points before the UTF-16 unit `end`. */
function charactersIn(text: string, end: number): number {
  let pairs = 0;
  for (let i = 1; i < end; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) pairs++;
  }
  return end - pairs;
}

class Fault extends Error {
  readonly index: number;

  constructor(reason: string, index: number) {
    super(reason);
    this.index = index;
  }
}

const SPACE = /[ \t\n\r]*/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
/** Characters other than quotes, escapes and control characters. */
const PLAIN = /[ !#-[\]-\uffff]*/y;
const HEX = /[0-9a-fA-F]{4}/y;

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    this.#value();
    if (this.#next() !== undefined) throw new Fault("Extra data", this.#at);
  }

  /** Skips white space and returns the next character without consuming it. */
  #next(): string | undefined {
    if (this.#text.charCodeAt(this.#at) <= 0x20) this.#take(SPACE);
    return this.#text[this.#at];
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text) || pattern.lastIndex === this.#at) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  #value(): void {
    const first = this.#next();
    if (first === "{") this.#list("}", () => this.#member());
    else if (first === "[") this.#list("]", () => this.#value());
    else if (first === '"') this.#string();
    else if (!this.#take(SCALAR)) throw new Fault("Expecting value", this.#at);
  }

  #list(bracket: string, takeItem: () => void): void {
    this.#at++;
    if (this.#next() !== bracket) {
      takeItem();
      while (this.#next() === ",") {
        this.#at++;
        takeItem();
      }
    }
    if (this.#next() !== bracket) throw new Fault("Expecting ',' delimiter", this.#at);
    this.#at++;
  }

  #member(): void {
    if (this.#next() !== '"') throw new Fault("Expecting property name enclosed in double quotes", this.#at);
    this.#string();
    if (this.#next() !== ":") throw new Fault("Expecting ':' delimiter", this.#at);
    this.#at++;
    this.#value();
  }

  #string(): void {
    const start = this.#at++;
    for (;;) {
      this.#take(PLAIN);
      const stop = this.#text[this.#at];
      if (stop === undefined) throw new Fault("Unterminated string starting at", start);
      if (stop === '"') break;
      if (stop !== "\\") throw new Fault("Invalid control character at", this.#at);
      this.#escape(start);
    }
    this.#at++;
  }

  #escape(start: number): void {
    const backslash = this.#at;
    const letter = this.#text[backslash + 1];
    if (letter === undefined) throw new Fault("Unterminated string starting at", start);
    this.#at += 2;
    if (letter !== "u") {
      if (!'"\\/bfnrt'.includes(letter)) throw new Fault("Invalid \\escape", backslash);
    } else if (!this.#take(HEX)) throw new Fault("Invalid \\uXXXX escape", backslash + 1);
  }
}
