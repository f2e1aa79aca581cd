import { GrowingBytes } from "./growing-bytes.ts";
import { JsonError, parseUntrusted } from "./json.ts";
import { isSpace, JsonValueScanner } from "./json-value-scanner.ts";

export interface JsonRowsOptions {
  /** The name of the member whose elements come one by one: the rows. */
  array: string;
  /** A row with more bytes is refused. */
  max_row_bytes: number;
  /** More bytes of keys and of values other than the rows, all together, are refused. Space between values is free. */
  max_rest_bytes: number;
  /** Called with each row and its index (from 0) as soon as the row is complete. Errors that it throws propagate from `push`. */
  onRow: (row: unknown, index: number) => void;
}

/**
 * Reads a JSON object with one very long array, `{"name": …, "results": [{…}, {…}, …], …}`, while its bytes arrive, and
 * holds no more than one row, the other members and a chunk. Finds the borders of keys, members and rows itself and leaves
 * each to {@link parseUntrusted}, so that exactly the documents that would be accepted whole are accepted, except that
 *
 * - the document must be an object, and may begin with a byte order mark;
 * - the array may come only once; of other members with the same key the last one counts, but all must be acceptable;
 * - the limits of depth, keys and values count for each row by itself.
 *
 * Rows are reported before the document is known to be complete: they are valid only when `end` has returned. After an error the
 * instance must not be used again. Both methods throw JsonError, whose message names the byte (from 0) and the row.
 */
export class JsonRows {
  readonly #options: JsonRowsOptions;
  readonly #scanner = new JsonValueScanner();
  /** The part of a value that came with earlier chunks. */
  readonly #held = new GrowingBytes();
  readonly #rest: Record<string, unknown> = {};
  #rest_bytes = 0;
  #rows = 0;
  /** Whether the member was there, as an array or not. */
  #isFound = false;
  #hasArray = false;
  #place: Place = "start";
  /** The key of the member that `place` is in: its value, and its text with the quotes. */
  #key = "";
  #keyText = "";
  /** Bytes of the chunks before this one. */
  #offset = 0;
  /** The offset of the first byte of the value that is being read; undefined between values. */
  #from: number | undefined;

  constructor(options: JsonRowsOptions) {
    this.#options = options;
  }

  /** Whether the array was found; distinguishes an array from the literal `true` in the result of `end`. */
  get hasArray(): boolean {
    return this.#hasArray;
  }

  /** Takes the next bytes, cut anywhere. They are copied where they are needed later. */
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

  /**
   * The other members, and `true` for the array when it was there. A member of the array's name that is something else is
   * returned as it is.
   */
  end(): Record<string, unknown> {
    if (this.#place !== "end") throw new JsonError(`is not whole: it ends at byte ${this.#offset}${this.#where()}`);
    return this.#rest;
  }

  /** Takes a byte between values. Returns the index to go on at: the same one when a value begins there. */
  #step(byte: number, at: number): number {
    const char = String.fromCharCode(byte);
    const next = GRAMMAR[this.#place].next[char];
    // A byte order mark has the first three bytes of the document, nowhere else.
    if (next === undefined || (next === "document" && this.#offset + at !== 2)) this.#refuse(at);
    if (next === "value") {
      if (this.#place !== "member" || char !== "[" || this.#key !== this.#options.array) {
        this.#from = this.#offset + at;
        return at;
      }
      this.#hasArray = true;
      this.#rest[this.#key] = true;
      this.#place = "first row";
    } else this.#place = next;
    return at + 1;
  }

  #readValue(bytes: Buffer, at: number, from: number): number {
    const end = this.#scanner.scan(bytes, at);
    this.#limit(this.#held.length + (end === -1 ? bytes.length : end) - at, from);
    if (end === -1) {
      this.#held.append(bytes.subarray(at));
      return bytes.length;
    }
    if (this.#held.length === 0) this.#take(bytes.toString("utf8", at, end), from, end - at);
    else {
      this.#held.append(bytes.subarray(at, end));
      const length = this.#held.length;
      this.#take(this.#held.takeText(), from, length);
    }
    this.#from = undefined;
    return end;
  }

  /** Takes the text of a whole key, member or row. */
  #take(text: string, from: number, bytes: number): void {
    if (isRow(this.#place)) {
      const row = parseAt(text, from, `row ${this.#rows}`);
      this.#place = "after row";
      this.#options.onRow(row, this.#rows++);
      return;
    }
    this.#rest_bytes += bytes;
    if (this.#place === "member") this.#takeMember(text, from);
    else this.#takeKey(text, from);
  }

  #takeKey(text: string, from: number): void {
    this.#key = parseAt(text, from, "key") as string;
    this.#keyText = text;
    if (this.#key === this.#options.array) {
      if (this.#isFound) throw new JsonError(`has a second member ${JSON.stringify(this.#key)} at byte ${from}`);
      this.#isFound = true;
    }
    this.#place = "after key";
  }

  #takeMember(text: string, from: number): void {
    // Parsed together with its key, because the key may be one that parseUntrusted refuses or changes.
    const before = `{${this.#keyText}:`;
    const member = parseAt(`${before}${text}}`, from, `member ${this.#keyText}`, before) as object;
    Object.assign(this.#rest, member);
    this.#place = "after member";
  }

  #limit(bytes: number, from: number): void {
    const { array, max_row_bytes, max_rest_bytes } = this.#options;
    if (isRow(this.#place)) {
      if (bytes <= max_row_bytes) return;
      throw new JsonError(`has a row ${this.#rows}, from byte ${from} on, of more than ${max_row_bytes} bytes`);
    }
    if (this.#rest_bytes + bytes <= max_rest_bytes) return;
    const passed = `passed by what begins at byte ${from}`;
    throw new JsonError(`has more than ${max_rest_bytes} bytes besides the rows of "${array}", ${passed}`);
  }

  #refuse(at: number): never {
    const { wants } = GRAMMAR[this.#place];
    throw new JsonError(`cannot be read at byte ${this.#offset + at}${this.#where()}: expected ${wants}`);
  }

  #where(): string {
    if (isRow(this.#place)) return `, ${this.#from === undefined ? "before" : "inside"} row ${this.#rows}`;
    if (this.#place === "after row") return `, after row ${this.#rows - 1}`;
    return this.#place === "after key" || this.#place === "member" ? `, in member ${this.#keyText}` : "";
  }
}

/** Parses a text that begins, after `before`, at the byte `from` of the document. `what` is for the message. */
function parseAt(text: string, from: number, what: string, before = ""): unknown {
  try {
    return parseUntrusted(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    // The parser counts UTF-16 units; the client that sent the document counts bytes.
    const reason = error.message.replace(/ in JSON at position (\d+)( \(line.*\))?$/, (_, position) => {
      return ` at byte ${from + Buffer.byteLength(text.slice(0, Number(position))) - Buffer.byteLength(before)}`;
    });
    throw new JsonError(`has a ${what}, from byte ${from} on, that ${reason}`);
  }
}

/** The bytes that are allowed at a {@link Place} of a {@link JsonRows} document, and the place after each of them. */
interface Rule {
  /** For "expected …". */
  wants: string;
  /** "value": the byte begins a key, a member or a row, and belongs to it. */
  next: Record<string, Place | "value">;
}

type Place =
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

/** What a member or a row may begin with. */
const VALUE = Object.fromEntries([...'{["-0123456789tfn'].map((char) => [char, "value" as const]));

/** Bytes are given as the characters of the same number; space is skipped before. The marks are the byte order mark's. */
const GRAMMAR: Record<Place, Rule> = {
  start: { wants: "an object", next: { "{": "first key", "\xef": "mark 2" } },
  "mark 2": { wants: "an object", next: { "\xbb": "mark 3" } },
  "mark 3": { wants: "an object", next: { "\xbf": "document" } },
  document: { wants: "an object", next: { "{": "first key" } },
  "first key": { wants: 'a key in " or a }', next: { '"': "value", "}": "end" } },
  key: { wants: 'a key in "', next: { '"': "value" } },
  "after key": { wants: "a :", next: { ":": "member" } },
  member: { wants: "a value", next: VALUE },
  "after member": { wants: "a , or a }", next: { ",": "key", "}": "end" } },
  "first row": { wants: "a value or a ]", next: { ...VALUE, "]": "after member" } },
  row: { wants: "a value", next: VALUE },
  "after row": { wants: "a , or a ]", next: { ",": "row", "]": "after member" } },
  end: { wants: "nothing more", next: {} },
};

/** Whether a value that begins here is a row. */
const isRow = (place: Place): boolean => place === "first row" || place === "row";
