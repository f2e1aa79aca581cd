import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync, unlinkSync, writeSync } from "node:fs";
import { idOfName } from "../../platform/lib/ids.ts";
import type { ExperimentRef, ExperimentRow } from "./store-traces.ts";

/** Namespace of the run IDs that are generated for rows in journals of earlier versions, which have no run IDs. */
const NAMESPACE = "8d9c4c0e-52a5-5d39-8e8a-6f6d1b1c9a12";

interface ExperimentEntry {
  experiment: ExperimentRef;
}

/** A file with the experiment and its finished rows, one per line. A row is flushed to disk before it is counted. */
export class Journal {
  readonly file: string;
  readonly #counts = new Map<string, number>();
  readonly #output: number;
  /** Undefined in a new journal, and in a journal that an earlier version wrote. */
  experiment: ExperimentRef | undefined;

  constructor(file: string) {
    this.file = file;
    if (existsSync(file)) this.#load();
    this.#output = openSync(file, "a");
  }

  get count(): number {
    return [...this.#counts.values()].reduce((sum, n) => sum + n, 0);
  }

  countOf(row_id: string): number {
    return this.#counts.get(row_id) ?? 0;
  }

  rows(): ExperimentRow[] {
    const lines = readFileSync(this.file, "utf8").split("\n");
    return lines.flatMap((line, index): ExperimentRow[] => {
      if (line === "") return [];
      const entry: ExperimentRow | ExperimentEntry = JSON.parse(line);
      return "experiment" in entry
        ? []
        : [{ ...entry, run_id: entry.run_id ?? idOfName(`${index} ${line}`, NAMESPACE) }];
    });
  }

  add(row: ExperimentRow): void {
    this.#append(row);
  }

  /** Sets the experiment. The caller must not replace the experiment of a journal that contains rows. */
  addExperiment(experiment: ExperimentRef): void {
    this.#append({ experiment });
  }

  close(): void {
    closeSync(this.#output);
  }

  delete(): void {
    unlinkSync(this.file);
  }

  /** Reads the file and removes an incomplete last line, which a crash can leave. The example of that line runs again. */
  #load(): void {
    const text = readFileSync(this.file, "utf8");
    const complete = text.slice(0, text.lastIndexOf("\n") + 1);
    if (complete.length < text.length) truncateSync(this.file, Buffer.byteLength(complete));
    for (const line of complete.split("\n")) if (line !== "") this.#read(JSON.parse(line));
  }

  #append(entry: ExperimentRow | ExperimentEntry): void {
    writeSync(this.#output, `${JSON.stringify(entry)}\n`);
    fsyncSync(this.#output);
    this.#read(entry);
  }

  #read(entry: ExperimentRow | ExperimentEntry): void {
    if ("experiment" in entry) this.experiment = entry.experiment;
    else this.#counts.set(String(entry.row_id), this.countOf(String(entry.row_id)) + 1);
  }
}
