import { CommandError } from "../command-error.ts";
import type { InputFile } from "../input-file.ts";
import type { Results } from "../rows.ts";

/** What a file cannot say itself. */
export interface ReadOptions {
  /** The id of the dataset, or else its name. */
  dataset?: string;
  /** Which of several experiments in one file. */
  provider?: string;
  prompt?: string;
}

/** Reads files of one kind. Rows are read when they are gone through, all else by then. */
export type ReadFormat = (file: InputFile, options: ReadOptions) => Results | Promise<Results>;

/** @throws CommandError when nobody said which dataset */
export function datasetOf({ dataset }: ReadOptions): string {
  if (dataset !== undefined) return dataset;
  throw new CommandError(
    "Say to which dataset the rows belong, with --dataset NAME (or --dataset-id ID): experiments are compared within a dataset.",
  );
}
