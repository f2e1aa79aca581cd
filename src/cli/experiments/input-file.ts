import { createReadStream, statSync } from "node:fs";
import { parse } from "node:path";
import { CommandError } from "../command.ts";

const CHUNK_BYTES = 256 * 1024;

/** A file that is read in chunks, in one or several passes. */
export class InputFile {
  readonly name: string;
  readonly size: number;
  /** The file name without extension. */
  readonly stem: string;
  /** In lower case, with the dot. */
  readonly extension: string;
  readonly #path: string;
  /** Number of bytes read in the current pass. */
  read = 0;
  onRead: () => void = () => undefined;

  /** @throws CommandError when there is no regular file at the path */
  constructor(path: string) {
    const { base, name, ext } = parse(path);
    this.name = base;
    this.stem = name;
    this.extension = ext.toLowerCase();
    this.size = sizeOf(path);
    this.#path = path;
  }

  async firstChunk(): Promise<string> {
    for await (const chunk of this.chunks()) return chunk.toString();
    return "";
  }

  /** Starts a new pass and yields the content without its byte order mark. */
  async *chunks(): AsyncGenerator<Buffer> {
    this.read = 0;
    const stream = createReadStream(this.#path, { highWaterMark: CHUNK_BYTES });
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const isFirst = this.read === 0;
      this.read += chunk.length;
      this.onRead();
      yield isFirst ? this.#withoutByteOrderMark(chunk) : chunk;
    }
  }

  /** Returns an error with its position, such as `results.jsonl, line 5: ...`. An empty position means the whole file. */
  error(position: string, problem: string): CommandError {
    return new CommandError(`${this.name}${position ? `, ${position}` : ""}: ${problem}`);
  }

  #withoutByteOrderMark(chunk: Buffer): Buffer {
    const mark = chunk.toString("latin1", 0, 3);
    if (mark.startsWith("\xff\xfe") || mark.startsWith("\xfe\xff"))
      throw this.error("", "UTF-16 is not supported. Save the file as UTF-8.");
    return mark === "\xef\xbb\xbf" ? chunk.subarray(3) : chunk;
  }
}

function sizeOf(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) throw new CommandError(`File not found: ${path}.`);
  if (!stats.isFile()) throw new CommandError(`Not a file: ${path}.`);
  return stats.size;
}
