import type { Tx } from "../../platform/database/database.ts";
import { microsecondsOf } from "../../platform/lib/times.ts";
import { allVersionsAt, examplesBy } from "../storage/examples.ts";
import { deleteRow, nextRepetitions, putTracedRow, rowKeysOf } from "../storage/runs.ts";
import type { ExampleRow } from "../storage/schema.ts";
import type { Run, RunDraft } from "./merge-run.ts";
import type { TraceSessions } from "./trace-sessions.ts";

/**
 * Stores the root of a trace as a row of its experiment: comparisons read these rows. A root becomes a row if it refers to an
 * example of its session's dataset (`reference_example_id`). Further roots with the same example are repetitions. A root that
 * now refers to another example has its row there.
 *
 * @returns the numbers of the experiments that have lost rows
 */
export async function storeExperimentRows(tx: Tx, sessions: TraceSessions, drafts: RunDraft[]): Promise<number[]> {
  const roots = drafts.filter(({ run }) => run.is_root === 1 && run.reference_example_id !== null);
  const left: number[] = [];
  for (const [experiment_no, group] of Map.groupBy(roots, ({ run }) => run.experiment_no)) {
    const dataset_no = sessions.datasetOf(experiment_no);
    if (dataset_no !== null) left.push(...(await storeRows(tx, experiment_no, dataset_no, group)));
  }
  return left;
}

async function storeRows(tx: Tx, experiment_no: number, dataset_no: number, drafts: RunDraft[]): Promise<number[]> {
  const ids = new Set(drafts.map(({ run }) => run.reference_example_id as string));
  const examples = new Map((await examplesBy(tx, "example_id", dataset_no, [...ids])).map((e) => [e.example_id, e]));
  const { tenant_id } = (drafts[0] as RunDraft).run;
  const known = await rowKeysOf(
    tx,
    tenant_id,
    drafts.map(({ run }) => run.run_id),
  );
  const indexOf = ({ run }: RunDraft) => examples.get(run.reference_example_id as string)?.example_index;
  const left: number[] = [];
  for (const draft of drafts) {
    const row = known.get(draft.run.run_id);
    if (!row || (row.experiment_no === experiment_no && row.example_index === indexOf(draft))) continue;
    await deleteRow(tx, row);
    known.delete(draft.run.run_id);
    left.push(row.experiment_no);
  }
  const indexes = [...examples.values()].map(({ example_index }) => example_index);
  const next = await nextRepetitions(tx, experiment_no, indexes);
  const versionOf = await exampleVersions(tx, dataset_no, [...examples.values()]);
  for (const { run, payload } of drafts) {
    const example = examples.get(run.reference_example_id as string);
    if (!example) continue;
    const { example_index } = example;
    const repetition = known.get(run.run_id)?.repetition ?? next.get(example_index) ?? 0;
    if (!known.has(run.run_id)) next.set(example_index, repetition + 1);
    const key = { experiment_no, example_index, repetition };
    await putTracedRow(
      tx,
      {
        ...key,
        run_id: run.run_id,
        tenant_id,
        example_version: versionOf(example, run),
        name: run.name ?? "run",
        start_us: run.start_us,
        // The JavaScript client truncates the end to milliseconds, so the end may be before the start.
        end_us: run.end_us === null ? null : Math.max(run.start_us, run.end_us),
        error: payload.error,
        metadata: run.metadata,
        inputs_preview: run.inputs_preview ?? "",
        outputs_preview: run.outputs_preview,
        is_traced: 1,
      },
      payload.outputs,
    );
  }
  return left;
}

/**
 * The version of an example that a run used: the newest one at the time in the metadata field `example_version`, which the official
 * clients send, or else at the start of the run. If that time is before the first version, the first version is used.
 */
async function exampleVersions(tx: Tx, dataset_no: number, examples: readonly ExampleRow[]) {
  const changed = examples.filter(({ version }) => version > 1).map(({ example_index }) => example_index);
  const columns = ["example_index", "version", "created_at"] as const;
  const all = changed.length === 0 ? [] : await allVersionsAt(tx, dataset_no, changed, columns);
  const byIndex = Map.groupBy(all, ({ example_index }) => example_index);
  return ({ example_index, version }: ExampleRow, { metadata, start_us }: Run): number => {
    const versions = byIndex.get(example_index);
    if (!versions) return version;
    const named: unknown = metadata === null ? undefined : JSON.parse(metadata).example_version;
    const at_us = (typeof named === "string" ? microsecondsOf(named) : undefined) ?? start_us;
    const found = versions.findLast(({ created_at }) => Number(created_at) * 1000 <= at_us) ?? versions[0];
    return found?.version ?? version;
  };
}
