import { JsonError, parseUntrusted } from "./json.ts";
import { GrowingBytes, isSpace, JsonValueScanner } from "./json-value-scanner.ts";

export interface JsonRowsOptions {
  /** The member whose elements are the rows. */
  array: string;
  max_row_bytes: number;
  /** Maximum total size of all keys and of all values that are not rows, without the white space between them. */
  max_rest_bytes: number;
  /** Called with each complete row and its index from 0. `push` throws the errors of the listener. */
  onRow: (row: unknown, index: number) => void;
}

/**
 * Reads a JSON object with one very long array, `{"name": …, "results": [{…}, {…}, …], …}`, while its bytes arrive. At
 * any time, memory contains one row, the other members and one chunk. {@link parseUntrusted} parses each key, member
 * and row, so the same documents are accepted as by parsing a whole document, except that:
 *
 * - the document must be an object, and may begin with a byte order mark;
 * - the array must not be repeated; of other members with the same key, the last one counts, but all must be valid;
 * - the limits of depth, keys and values apply to each row.
 *
 * Rows are valid only when `end` has returned. `push` and `end` throw a JsonError for an invalid document. The instance
 * must not be used after an error.
 */
export class JsonRows {
  readonly #options: JsonRowsOptions;
  readonly #scanner = new JsonValueScanner();
  /** The part of a value from earlier chunks. */
  readonly #partial = new GrowingBytes();
  readonly #rest: Record<string, unknown> = {};
  #rest_bytes = 0;
  #rows = 0;
  /** Whether the document contains the key `array`, even if the value is not an array. */
  #isFound = false;
  #hasArray = false;
  #state: State = "start";
  /** The current key, parsed and as JSON text. */
  #key = "";
  #keyText = "";
  /** Number of bytes in earlier chunks. */
  #offset = 0;
  /** Offset of the value that is being read; undefined between values. */
  #from: number | undefined;

  constructor(options: JsonRowsOptions) {
    this.#options = options;
  }

  get hasArray(): boolean {
    return this.#hasArray;
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let at = 0;
    while (at < bytes.length) {
      if (this.#from !== undefined) at = this.#readValue(bytes, at, this.#from);
      else if (isSpace(bytes[at] as number)) at++;
      else at = this.#step(bytes[at] as number, at);
    }
    this.#offset += bytes.length;
  }

  /** @returns the members, with `true` for the array */
  end(): Record<string, unknown> {
    if (this.#state !== "end") throw new JsonError(`is incomplete: it ends at byte ${this.#offset}${this.#context()}`);
    return this.#rest;
  }

  /** Handles a byte between values. Returns the index to continue at: `at` if a value begins with the byte, otherwise `at + 1`. */
  #step(byte: number, at: number): number {
    const char = String.fromCharCode(byte);
    const next = GRAMMAR[this.#state].next[char];
    // A byte order mark is valid at the start of the document only.
    if (next === undefined || (next === "document" && this.#offset + at !== 2)) this.#refuse(at);
    if (next === "value") {
      if (this.#state !== "member" || char !== "[" || this.#key !== this.#options.array) {
        this.#from = this.#offset + at;
        return at;
      }
      this.#hasArray = true;
      this.#rest[this.#key] = true;
      this.#state = "first row";
    } else this.#state = next;
    return at + 1;
  }

  #readValue(bytes: Buffer, at: number, from: number): number {
    const end = this.#scanner.scan(bytes, at);
    this.#checkLimit(this.#partial.length + (end === -1 ? bytes.length : end) - at, from);
    if (end === -1) {
      this.#partial.append(bytes.subarray(at));
      return bytes.length;
    }
    if (this.#partial.length === 0) this.#take(bytes.toString("utf8", at, end), from, end - at);
    else {
      this.#partial.append(bytes.subarray(at, end));
      const length = this.#partial.length;
      this.#take(this.#partial.takeText(), from, length);
    }
    this.#from = undefined;
    return end;
  }

  /** @param text a complete key, member or row */
  #take(text: string, from: number, bytes: number): void {
    if (isRow(this.#state)) {
      const row = parseAt(text, from, `row ${this.#rows}`);
      this.#state = "after row";
      this.#options.onRow(row, this.#rows++);
      return;
    }
    this.#rest_bytes += bytes;
    if (this.#state === "member") this.#takeMember(text, from);
    else this.#takeKey(text, from);
  }

  #takeKey(text: string, from: number): void {
    this.#key = parseAt(text, from, "the key") as string;
    this.#keyText = text;
    if (this.#key === this.#options.array) {
      if (this.#isFound) throw new JsonError(`has a duplicate key ${JSON.stringify(this.#key)} at byte ${from}`);
      this.#isFound = true;
    }
    this.#state = "after key";
  }

  #takeMember(text: string, from: number): void {
    // Parsed with its key, because parseUntrusted refuses some keys and changes others.
    const before = `{${this.#keyText}:`;
    const member = parseAt(`${before}${text}}`, from, `member ${this.#keyText}`, before) as object;
    Object.assign(this.#rest, member);
    this.#state = "after member";
  }

  #checkLimit(bytes: number, from: number): void {
    const { array, max_row_bytes, max_rest_bytes } = this.#options;
    if (isRow(this.#state)) {
      if (bytes <= max_row_bytes) return;
      throw new JsonError(`has more than ${max_row_bytes} bytes in row ${this.#rows}, which starts at byte ${from}`);
    }
    if (this.#rest_bytes + bytes <= max_rest_bytes) return;
    const reason = `the limit is exceeded in the value at byte ${from}`;
    throw new JsonError(`has more than ${max_rest_bytes} bytes outside the rows of "${array}": ${reason}`);
  }

  #refuse(at: number): never {
    const { expected } = GRAMMAR[this.#state];
    throw new JsonError(`has a syntax error at byte ${this.#offset + at}${this.#context()}: expected ${expected}`);
  }

  #context(): string {
    if (isRow(this.#state)) return `, ${this.#from === undefined ? "before" : "inside"} row ${this.#rows}`;
    if (this.#state === "after row") return `, after row ${this.#rows - 1}`;
    return this.#state === "after key" || this.#state === "member" ? `, in member ${this.#keyText}` : "";
  }
}

/**
 * @param from offset of the text in the document
 * @param what name of the value for the error
 * @param before prefix that was added to `text` and is not in the document
 */
function parseAt(text: string, from: number, what: string, before = ""): unknown {
  try {
    return parseUntrusted(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    // The parser counts UTF-16 units; the error message counts bytes.
    const reason = error.message.replace(/ in JSON at position (\d+)( \(line.*\))?$/, (_, position) => {
      return ` at byte ${from + Buffer.byteLength(text.slice(0, Number(position))) - Buffer.byteLength(before)}`;
    });
    throw new JsonError(`is invalid because ${what} at byte ${from} ${reason}`);
  }
}

type State =
  | "start"
  | "mark 2"
  | "mark 3"
  | "document"
  | "first key"
  | "key"
  | "after key"
  | "member"
  | "after member"
  | "first row"
  | "row"
  | "after row"
  | "end";

/**
 * `next` maps each allowed byte, as a character, to the next state, or to "value" if the byte begins a key, a member's
 * value or a row.
 */
interface Rule {
  expected: string;
  next: Record<string, State | "value">;
}

const VALUE = Object.fromEntries([...'{["-0123456789tfn'].map((char) => [char, "value" as const]));

/** "mark 2" and "mark 3" expect the second and third byte of a byte order mark. White space is skipped before the lookup. */
const GRAMMAR: Record<State, Rule> = {
  start: { expected: "an object", next: { "{": "first key", "\xef": "mark 2" } },
  "mark 2": { expected: "an object", next: { "\xbb": "mark 3" } },
  "mark 3": { expected: "an object", next: { "\xbf": "document" } },
  document: { expected: "an object", next: { "{": "first key" } },
  "first key": { expected: '"}" or a key in quotes', next: { '"': "value", "}": "end" } },
  key: { expected: "a key in quotes", next: { '"': "value" } },
  "after key": { expected: '":"', next: { ":": "member" } },
  member: { expected: "a value", next: VALUE },
  "after member": { expected: '"," or "}"', next: { ",": "key", "}": "end" } },
  "first row": { expected: 'a value or "]"', next: { ...VALUE, "]": "after member" } },
  row: { expected: "a value", next: VALUE },
  "after row": { expected: '"," or "]"', next: { ",": "row", "]": "after member" } },
  end: { expected: "the end of the document", next: {} },
};

const isRow = (state: State): boolean => state === "first row" || state === "row";
