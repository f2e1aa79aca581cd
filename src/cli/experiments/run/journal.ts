import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, unlinkSync, writeSync } from "node:fs";
import type { JsonObject } from "../../../platform/lib/json/json.ts";

/**
 * The rows that are done, one a line in a file, each written before the next is begun to be counted: a run that is begun again
 * after a crash leaves them out. The file is what is uploaded in the end.
 */
export class Journal {
  readonly file: string;
  readonly #done = new Map<string, number>();
  readonly #output: number;
  /** When the first row began, ISO 8601; undefined without rows. */
  began: string | undefined;

  constructor(file: string) {
    this.file = file;
    if (existsSync(file)) this.#recall();
    this.#output = openSync(file, "a");
  }

  /** Rows that are done. */
  get count(): number {
    return [...this.#done.values()].reduce((sum, n) => sum + n, 0);
  }

  /** How often an example is done. */
  times(row_id: string): number {
    return this.#done.get(row_id) ?? 0;
  }

  add(row: JsonObject): void {
    writeSync(this.#output, `${JSON.stringify(row)}\n`);
    fsyncSync(this.#output);
    this.#note(row);
  }

  close(): void {
    closeSync(this.#output);
  }

  /** Everything in it is stored elsewhere. */
  remove(): void {
    unlinkSync(this.file);
  }

  /** A line that a crash has cut off is dropped: its example is tried again. */
  #recall(): void {
    const text = readFileSync(this.file, "utf8");
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    if (whole.length < text.length) truncateSync(this.file, Buffer.byteLength(whole));
    for (const line of whole.split("\n")) if (line !== "") this.#note(JSON.parse(line));
  }

  #note({ row_id, start_time }: JsonObject): void {
    this.#done.set(String(row_id), this.times(String(row_id)) + 1);
    if (this.began === undefined || String(start_time) < this.began) this.began = String(start_time);
  }
}
