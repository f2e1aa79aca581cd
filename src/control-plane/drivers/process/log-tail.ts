import { type FileHandle, open, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { replaceFile } from "../../../platform/lib/replace-file.ts";
import { LineSplitter, type LogReceiver, sendLines, stderrTail } from "../log-line.ts";

const POLL_MS = 200;
const CHUNK_BYTES = 256 * 1024;
/** A file of at least this size is truncated after it has been read completely. Output between the read and the truncation is lost. */
const TRUNCATE_FROM_BYTES = 64 * 2 ** 20;
/** What an instance has written beyond this size is skipped: it writes faster than its lines are stored, and would fill the disk. */
const MAX_UNREAD_BYTES = 64 * 2 ** 20;
/** The longest line, which can be incomplete when the file is truncated. */
const MAX_LINE_BYTES = 64 * 1024;
/** Time limit for the rest of the output after the end of the instance. */
const LAST_MS = 10_000;

/** Sends the output of an instance line by line. The file position is stored after the lines before it, and survives restarts. */
export class LogTail {
  readonly #file: string;
  readonly #receiver: LogReceiver;
  readonly #onError: (error: unknown) => void;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #offset = 0;

  constructor(file: string, receiver: LogReceiver, onError: (error: unknown) => void) {
    this.#file = file;
    this.#receiver = receiver;
    this.#onError = onError;
    this.#running = this.#run();
  }

  /** Reads the rest of the file and stops. With `last`, also sends an incomplete last line. */
  async stop({ last }: { last: boolean }): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#readAll({ last }).catch(this.#onError);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    this.#offset = await readOffset(this.#file);
    while (!signal.aborted) {
      await this.#readAll({ last: false }).catch(this.#onError);
      await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #readAll({ last }: { last: boolean }): Promise<void> {
    const file = await open(this.#file, "r+").catch(() => undefined);
    if (!file) return;
    const end = last ? performance.now() + LAST_MS : Number.POSITIVE_INFINITY;
    try {
      // Sends and stores one chunk at a time, then records the position, so that few lines are repeated after a crash.
      for (;;) {
        await this.#skipUnread(file);
        const splitter = new LineSplitter();
        const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, this.#offset);
        const lines = splitter.add(buffer.subarray(0, bytesRead));
        const rest = splitter.pending;
        if (last && bytesRead < CHUNK_BYTES) lines.push(...splitter.end());
        await this.#send(lines, bytesRead - (last && bytesRead < CHUNK_BYTES ? 0 : rest));
        if (bytesRead < CHUNK_BYTES || performance.now() > end) break;
      }
      const { size } = await file.stat();
      if (this.#offset >= TRUNCATE_FROM_BYTES && size - this.#offset <= MAX_LINE_BYTES) {
        await file.truncate(0);
        await this.#moveTo(0);
      }
    } finally {
      await file.close();
    }
  }

  /** After a crash between the truncation and its record, the position is behind the end of the file. */
  async #skipUnread(file: FileHandle): Promise<void> {
    const { size } = await file.stat();
    const unread = size - this.#offset;
    if (unread >= 0 && unread <= MAX_UNREAD_BYTES) return;
    if (unread > 0) {
      const text = `${unread} bytes of output were skipped, because they were written faster than they can be stored.`;
      await sendLines([{ text, at_ms: Date.now() }], this.#receiver, this.#stopping);
      await file.truncate(0);
    }
    await this.#moveTo(0);
  }

  async #send(lines: readonly string[], bytes: number): Promise<void> {
    if (bytes === 0) return;
    const at_ms = Date.now();
    await sendLines(
      lines.map((text) => ({ text, at_ms })),
      this.#receiver,
      this.#stopping,
    );
    await this.#moveTo(this.#offset + bytes);
  }

  async #moveTo(offset: number): Promise<void> {
    await replaceFile(offsetFile(this.#file), String(offset));
    this.#offset = offset;
  }
}

export const offsetFile = (file: string): string => `${file}.offset`;

async function readOffset(file: string): Promise<number> {
  return Number(await readFile(offsetFile(file), "utf8").catch(() => "0")) || 0;
}

const TAIL_BYTES = 16_384;

/** Returns the last lines of a process's output; empty if there is no output. */
export async function readStderrTail(file: string): Promise<string> {
  const handle = await open(file, "r").catch(() => undefined);
  if (!handle) return "";
  try {
    const { size } = await handle.stat();
    const from = Math.max(0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, from);
    return stderrTail(buffer.toString("utf8", 0, bytesRead).split("\n"));
  } finally {
    await handle.close();
  }
}
