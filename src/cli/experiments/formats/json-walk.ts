import { GrowingBytes } from "../../../platform/lib/json/growing-bytes.ts";
import { isSpace, JsonValueScanner } from "../../../platform/lib/json/json-value-scanner.ts";
import type { InputFile } from "../input-file.ts";

/** A value of a document. */
export interface Part {
  /** Keys from the outside in; `*` stands for an element of a list. */
  path: string[];
  /** Of an element in its list. */
  index: number;
  value: unknown;
  text: string;
}

/**
 * What to do with a value: `enter` a list or an object to meet what is in it, `take` it whole, `skip` it, or `stop` reading.
 * `first` is its first character.
 */
export type Visit = (path: string[], first: string) => "enter" | "take" | "skip" | "stop";

/** Goes through a JSON file of any size in one pass. Holds one taken value at a time. Stops early when nobody reads on. */
export async function* partsOf(file: InputFile, visit: Visit): AsyncGenerator<Part> {
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
  /** Elements that ended. */
  index: number;
}

type Expected = "a value" | "a value or ]" | "a key" | "a key or }" | ":" | ", or ]" | ", or }" | "nothing more";

class JsonWalk {
  isStopped = false;
  readonly #file: InputFile;
  readonly #visit: Visit;
  readonly #scanner = new JsonValueScanner();
  readonly #held = new GrowingBytes();
  readonly #frames: Frame[] = [];
  #expected: Expected = "a value";
  #path: string[] = [];
  /** The value that is being passed, if any. */
  #reading: "key" | "take" | "skip" | undefined;
  /** Bytes before this chunk, and those before the value. */
  #offset = 0;
  #from = 0;

  constructor(file: InputFile, visit: Visit) {
    this.#file = file;
    this.#visit = visit;
  }

  *push(bytes: Buffer): Generator<Part> {
    let at = 0;
    while (at < bytes.length && !this.isStopped) {
      if (this.#reading) {
        const end = this.#scanner.scan(bytes, at);
        if (this.#reading !== "skip") this.#held.append(bytes.subarray(at, end === -1 ? bytes.length : end));
        at = end === -1 ? bytes.length : end;
        if (end === -1) break;
        const part = this.#finish();
        if (part) yield part;
      } else if (isSpace(bytes[at] as number)) at++;
      else at = this.#step(String.fromCharCode(bytes[at] as number), at);
    }
    this.#offset += bytes.length;
  }

  end(): void {
    if (this.#expected !== "nothing more") throw this.#file.wrong("", "is cut off: its JSON does not end.");
  }

  /** Takes a character between values. Returns where to go on: at the same place when a value or a key begins there. */
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
    else throw this.#refusal(this.#offset + at, `expected ${this.#expected}`);
    return at + 1;
  }

  #begin(char: string, at: number): number {
    const todo = this.#visit(this.#path, char);
    if (todo === "stop") this.isStopped = true;
    else if (todo !== "enter" || (char !== "{" && char !== "["))
      return this.#read(todo === "enter" ? "take" : todo, at);
    const isList = char === "[";
    this.#frames.push({ path: this.#path, isList, index: 0 });
    this.#expected = isList ? "a value or ]" : "a key or }";
    if (isList) this.#path = [...this.#path, "*"];
    return at + 1;
  }

  #read(what: "key" | "take" | "skip", at: number): number {
    this.#reading = what;
    this.#from = this.#offset + at;
    return at;
  }

  #finish(): Part | undefined {
    const what = this.#reading;
    this.#reading = undefined;
    const frame = this.#frames.at(-1);
    if (what === "skip") {
      this.#afterValue();
      return undefined;
    }
    const text = this.#held.takeText();
    const value = this.#parse(text);
    if (what === "key") {
      this.#path = [...(frame as Frame).path, value as string];
      this.#expected = ":";
      return undefined;
    }
    const part = { path: this.#path, index: frame?.index ?? 0, value, text };
    this.#afterValue();
    return part;
  }

  #afterValue(): void {
    const frame = this.#frames.at(-1);
    if (frame) frame.index++;
    this.#expected = !frame ? "nothing more" : frame.isList ? ", or ]" : ", or }";
  }

  #parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw this.#refusal(this.#from, (error as Error).message);
    }
  }

  #refusal(byte: number, reason: string): Error {
    const frame = this.#frames.findLast(({ isList }) => isList);
    const where = frame ? `element ${frame.index} of ${frame.path.join(".") || "the list"}, ` : "";
    return this.#file.wrong(`${where}byte ${byte}`, `is not valid JSON: ${reason}.`);
  }
}
