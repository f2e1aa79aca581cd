import { GrowingBytes, isSpace, JsonValueScanner } from "../../../platform/lib/json/json-value-scanner.ts";
import type { InputFile } from "../input-file.ts";

export interface PathValue {
  /** Keys from the root; `*` matches each element of a list. */
  path: string[];
  /** Index of the value in its list or object. */
  index: number;
  value: unknown;
  text: string;
}

/**
 * Decides how a value is handled: `enter` visits the values in a list or an object, `take` yields the value, `skip` ignores it, and `stop`
 * ends the walk. `first` is the first character of the value.
 */
export type Visit = (path: string[], first: string) => "enter" | "take" | "skip" | "stop";

/** Yields values of a JSON file of any size in one pass. Holds at most one value in memory. */
export async function* valuesOf(file: InputFile, visit: Visit): AsyncGenerator<PathValue> {
  const walk = new JsonWalk(file, visit);
  for await (const chunk of file.chunks()) {
    yield* walk.push(chunk);
    if (walk.isStopped) return;
  }
  walk.end();
}

interface Frame {
  path: string[];
  isList: boolean;
  /** Number of elements or members that have been read. */
  index: number;
}

type Expected = "a value" | "a value or ]" | "a key" | "a key or }" | ":" | ", or ]" | ", or }" | "the end of the file";

class JsonWalk {
  isStopped = false;
  readonly #file: InputFile;
  readonly #visit: Visit;
  readonly #scanner = new JsonValueScanner();
  readonly #buffered = new GrowingBytes();
  readonly #frames: Frame[] = [];
  #expected: Expected = "a value";
  #path: string[] = [];
  /** What is being read: a key, or a value that is taken or skipped. Undefined between them. */
  #reading: "key" | "take" | "skip" | undefined;
  /** Byte offsets in the file of the current chunk and of the current value. */
  #offset = 0;
  #value_offset = 0;

  constructor(file: InputFile, visit: Visit) {
    this.#file = file;
    this.#visit = visit;
  }

  *push(bytes: Buffer): Generator<PathValue> {
    let at = 0;
    while (at < bytes.length && !this.isStopped) {
      if (this.#reading) {
        const end = this.#scanner.scan(bytes, at);
        if (this.#reading !== "skip") this.#buffered.append(bytes.subarray(at, end === -1 ? bytes.length : end));
        at = end === -1 ? bytes.length : end;
        if (end === -1) break;
        const value = this.#finish();
        if (value) yield value;
      } else if (isSpace(bytes[at] as number)) at++;
      else at = this.#step(String.fromCharCode(bytes[at] as number), at);
    }
    this.#offset += bytes.length;
  }

  end(): void {
    if (this.#expected !== "the end of the file") throw this.#file.error("", "invalid JSON: the file is incomplete.");
  }

  /** Handles a character between values. Returns the next position, which is `at` if a key or a value to read begins there. */
  #step(char: string, at: number): number {
    const frame = this.#frames.at(-1);
    if (char === '"' && this.#expected.startsWith("a key")) return this.#read("key", at);
    if ((char === "}" || char === "]") && this.#expected.endsWith(char)) {
      this.#frames.pop();
      this.#afterValue();
    } else if (char === ":" && this.#expected === ":") this.#expected = "a value";
    else if (char === "," && this.#expected.startsWith(",")) {
      this.#expected = frame?.isList ? "a value" : "a key";
      if (frame?.isList) this.#path = [...frame.path, "*"];
    } else if (this.#expected.startsWith("a value") && '{["-0123456789tfn'.includes(char)) return this.#begin(char, at);
    else throw this.#syntaxError(this.#offset + at, `expected ${this.#expected}`);
    return at + 1;
  }

  #begin(char: string, at: number): number {
    const action = this.#visit(this.#path, char);
    if (action === "stop") this.isStopped = true;
    else if (action !== "enter" || (char !== "{" && char !== "["))
      return this.#read(action === "enter" ? "take" : action, at);
    const isList = char === "[";
    this.#frames.push({ path: this.#path, isList, index: 0 });
    this.#expected = isList ? "a value or ]" : "a key or }";
    if (isList) this.#path = [...this.#path, "*"];
    return at + 1;
  }

  #read(kind: "key" | "take" | "skip", at: number): number {
    this.#reading = kind;
    this.#value_offset = this.#offset + at;
    return at;
  }

  #finish(): PathValue | undefined {
    const kind = this.#reading;
    this.#reading = undefined;
    const frame = this.#frames.at(-1);
    if (kind === "skip") {
      this.#afterValue();
      return undefined;
    }
    const text = this.#buffered.takeText();
    const value = this.#parse(text);
    if (kind === "key") {
      this.#path = [...(frame as Frame).path, value as string];
      this.#expected = ":";
      return undefined;
    }
    const found = { path: this.#path, index: frame?.index ?? 0, value, text };
    this.#afterValue();
    return found;
  }

  #afterValue(): void {
    const frame = this.#frames.at(-1);
    if (frame) frame.index++;
    this.#expected = !frame ? "the end of the file" : frame.isList ? ", or ]" : ", or }";
  }

  #parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw this.#syntaxError(this.#value_offset, (error as Error).message);
    }
  }

  #syntaxError(byte: number, reason: string): Error {
    const frame = this.#frames.findLast(({ isList }) => isList);
    const list = frame ? `element ${frame.index} of ${frame.path.join(".") || "the list"}, ` : "";
    return this.#file.error(`${list}byte ${byte}`, `invalid JSON: ${reason}.`);
  }
}
