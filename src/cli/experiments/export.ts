import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { extname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isUuid } from "../../platform/lib/ids.ts";
import type { Target } from "./api.ts";
import { CommandError } from "./command-error.ts";
import { type Exported, WRITERS } from "./export-formats.ts";
import { count, Progress } from "./progress.ts";
import { datasetOf, findByName, findExperiment, rowsOf, summaryOf } from "./read-back.ts";

export interface ExportFlags {
  format?: keyof typeof WRITERS;
  /** A file; standard output without it. */
  output?: string;
}

/**
 * Writes an experiment to a file that `experiments upload` takes again: the same rows with the same ids, times and scores. Only
 * JSON has the experiment's own fields and scores, too; CSV keeps key, score, label and comment of a score, and the rest as
 * JSON in a column of its own.
 *
 * @throws CommandError when there is no such experiment, or the file cannot be written; then no file is there
 */
export async function exportExperiment(experiment: string, flags: ExportFlags, target: Target): Promise<void> {
  const format = flags.format ?? formatOf(flags.output);
  const session =
    (isUuid(experiment) ? await findExperiment(target, experiment) : undefined) ??
    (await findByName(target, experiment));
  // Both on one terminal would write over each other.
  const isShared = flags.output === undefined && process.stdout.isTTY;
  const progress = new Progress(isShared ? { write: () => true } : process.stderr);
  const total = session.run_count ?? 0;
  let rows = 0;
  const step = () => ({ done: total === 0 ? undefined : Math.min(1, rows / total), rows });
  const onRows = (n: number) => {
    rows += n;
    progress.show(step());
  };
  try {
    const exported: Exported = {
      session,
      dataset: await datasetOf(target, session),
      summary: await summaryOf(target, session),
      rows: rowsOf(target, session, onRows),
    };
    await write(WRITERS[format](exported), flags.output);
    progress.end(step());
    if (flags.output !== undefined) process.stderr.write(`Wrote ${count(rows, "row")} to ${flags.output}.\n`);
  } catch (error) {
    progress.clear();
    throw error;
  }
}

function formatOf(output = ""): keyof typeof WRITERS {
  const extension = extname(output).slice(1).toLowerCase();
  return extension === "jsonl" || extension === "csv" ? extension : "json";
}

/** A file has its name only once it is whole. */
async function write(text: AsyncIterable<string>, output: string | undefined): Promise<void> {
  try {
    if (output === undefined) {
      await pipeline(Readable.from(text), process.stdout, { end: false });
      return;
    }
    const partial = `${output}.partial`;
    try {
      await pipeline(Readable.from(text), createWriteStream(partial));
      await rename(partial, output);
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    // Whoever reads the output has seen enough.
    if (code === "EPIPE") return;
    if (!syscall) throw error;
    throw new CommandError(
      `${output ?? "The output"} cannot be written (${code}). Choose another place with --output.`,
    );
  }
}
