import type { Tx } from "../../platform/database/database.ts";
import { allVersionsAt, type VersionedExample } from "../storage/examples.ts";
import type { RunWithOutputs } from "../storage/runs.ts";
import type { ExampleVersionRow } from "../storage/schema.ts";

type VersionedRun = Pick<RunWithOutputs, "example_index" | "example_version">;
type Content = Pick<ExampleVersionRow, "inputs" | "outputs">;
type ContentOf = (run: VersionedRun) => Content | undefined;

/** Returns a function that finds the example version a run used. Most runs used the newest version, which is already loaded. */
export async function contentsOfRuns(
  tx: Tx,
  dataset_no: number,
  examples: ReadonlyMap<number, VersionedExample>,
  runs: readonly VersionedRun[],
): Promise<ContentOf> {
  const isNewest = ({ example_index, example_version }: VersionedRun) =>
    examples.get(example_index)?.version === example_version;
  const indexes = [...new Set(runs.filter((run) => !isNewest(run)).map(({ example_index }) => example_index))];
  const columns = ["example_index", "version", "inputs", "outputs"] as const;
  const versions = indexes.length === 0 ? [] : await allVersionsAt(tx, dataset_no, indexes, columns);
  const byVersion = new Map(versions.map((row) => [`${row.example_index}/${row.version}`, row]));
  return (run) =>
    isNewest(run) ? examples.get(run.example_index) : byVersion.get(`${run.example_index}/${run.example_version}`);
}

/**
 * The example that a row of a comparison shows: inputs, reference outputs and attachments of the newest version that one of the runs used.
 * Metadata and splits come from the newest version of the example, because filters use that version.
 */
export function exampleOfRuns(
  example: VersionedExample,
  runs: readonly VersionedRun[],
  contentOf: ContentOf,
): VersionedExample {
  const newest = runs.reduce<VersionedRun | undefined>(
    (found, run) => (found && found.example_version >= run.example_version ? found : run),
    undefined,
  );
  const content = newest && contentOf(newest);
  if (!newest || !content) return example;
  return { ...example, version: newest.example_version, inputs: content.inputs, outputs: content.outputs };
}
