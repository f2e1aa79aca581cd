import { createReadStream, statSync } from "node:fs";
import { basename, extname } from "node:path";
import { CommandError } from "./command-error.ts";

const CHUNK_BYTES = 256 * 1024;

/** A file that is read in chunks, once or several times, and never held whole. */
export class InputFile {
  readonly path: string;
  readonly size: number;
  /** Bytes read so far in the present pass. */
  read = 0;
  /** Is called after each chunk. */
  onRead: () => void = () => undefined;

  /** @throws CommandError when there is no such file */
  constructor(path: string) {
    this.path = path;
    this.size = sizeOf(path);
  }

  /** The name without folders. */
  get name(): string {
    return basename(this.path);
  }

  /** The name without folders and extension. */
  get stem(): string {
    return basename(this.path, extname(this.path));
  }

  /** Lower case, with its dot. */
  get extension(): string {
    return extname(this.path).toLowerCase();
  }

  /** The bytes from the beginning on, without a byte order mark. */
  async *chunks(): AsyncGenerator<Buffer> {
    this.read = 0;
    const stream = createReadStream(this.path, { highWaterMark: CHUNK_BYTES });
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const isFirst = this.read === 0;
      this.read += chunk.length;
      this.onRead();
      yield isFirst ? this.#withoutMark(chunk) : chunk;
    }
  }

  /** Tells where something is wrong, for example `results.jsonl, line 5: ...`. */
  wrong(where: string, problem: string): CommandError {
    return new CommandError(`${this.name}${where ? `, ${where}` : ""}: ${problem}`);
  }

  #withoutMark(chunk: Buffer): Buffer {
    const mark = chunk.toString("latin1", 0, 3);
    if (mark.startsWith("\xff\xfe") || mark.startsWith("\xfe\xff"))
      throw this.wrong("", "is in UTF-16, which cannot be read. Save it as UTF-8.");
    return mark === "\xef\xbb\xbf" ? chunk.subarray(3) : chunk;
  }
}

function sizeOf(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) throw new CommandError(`There is no file ${path}.`);
  if (!stats.isFile()) throw new CommandError(`${path} is not a file.`);
  return stats.size;
}
