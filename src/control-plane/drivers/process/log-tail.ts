import { open, readFile, rename, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { InstanceOrder } from "../driver.ts";
import { readLogLine } from "../log-line.ts";
import { LineSplitter } from "./line-splitter.ts";

/** How often a file is looked at. */
const LOOK_MS = 200;
const PIECE_BYTES = 256 * 1024;
/** A file that has been told to its end is emptied from this size on. What is written in that very moment is lost. */
const EMPTY_FROM_BYTES = 64 * 2 ** 20;

/**
 * Tells what an instance writes into its file, line by line. How far it has come is kept beside the file, and moves on when the
 * lines before it are kept by whoever was told: after a restart it goes on from there.
 */
export class LogTail {
  readonly #file: string;
  readonly #order: Pick<InstanceOrder, "log" | "kept">;
  readonly #onError: (error: unknown) => void;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  #offset = 0;

  constructor(file: string, order: Pick<InstanceOrder, "log" | "kept">, onError: (error: unknown) => void) {
    this.#file = file;
    this.#order = order;
    this.#onError = onError;
    this.#running = this.#run();
  }

  /** Tells what has been written until now, a line that has no end yet only with `last`, and ends. */
  async stop({ last }: { last: boolean }): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#tellAll({ last }).catch(this.#onError);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    this.#offset = await readOffset(this.#file);
    while (!signal.aborted) {
      await this.#tellAll({ last: false }).catch(this.#onError);
      await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #tellAll({ last }: { last: boolean }): Promise<void> {
    const file = await open(this.#file, "r+").catch(() => undefined);
    if (!file) return;
    try {
      // A piece at a time is told, kept and noted, so that a crash repeats little.
      for (;;) {
        const splitter = new LineSplitter();
        const { bytesRead, buffer } = await file.read(Buffer.alloc(PIECE_BYTES), 0, PIECE_BYTES, this.#offset);
        const lines = splitter.add(buffer.subarray(0, bytesRead));
        const rest = splitter.pending;
        if (last && bytesRead < PIECE_BYTES) lines.push(...splitter.end());
        await this.#tell(lines, bytesRead - (last && bytesRead < PIECE_BYTES ? 0 : rest));
        if (bytesRead < PIECE_BYTES) break;
      }
      const { size } = await file.stat();
      if (size === this.#offset && size >= EMPTY_FROM_BYTES) {
        await file.truncate(0);
        await this.#moveTo(0);
      }
    } finally {
      await file.close();
    }
  }

  async #tell(lines: readonly string[], bytes: number): Promise<void> {
    if (bytes === 0) return;
    for (const text of lines) {
      const line = readLogLine(text, Date.now());
      if (line) this.#order.log(line);
    }
    await this.#kept();
    await this.#moveTo(this.#offset + bytes);
  }

  /** Whoever does not keep them any more is told nothing more: the next one to ask for the instance hears of these lines again. */
  async #kept(): Promise<void> {
    try {
      await this.#order.kept?.();
    } catch (error) {
      this.#stopping.abort();
      throw error;
    }
  }

  async #moveTo(offset: number): Promise<void> {
    await writeFile(`${offsetFile(this.#file)}.new`, String(offset), { mode: 0o600 });
    await rename(`${offsetFile(this.#file)}.new`, offsetFile(this.#file));
    this.#offset = offset;
  }
}

export const offsetFile = (file: string): string => `${file}.offset`;

async function readOffset(file: string): Promise<number> {
  return Number(await readFile(offsetFile(file), "utf8").catch(() => "0")) || 0;
}
