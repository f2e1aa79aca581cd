import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { ExamplesWithRunsQuery, ExampleWithRuns } from "../contract/comparison.ts";
import type { ExperimentRunsQuery, RunV2 } from "../contract/v2.ts";
import { JsonPieces } from "../json-pieces.ts";
import { getDataset, readExperiments } from "../lookups.ts";
import { list, RecordSerializer } from "../serialization/record-serializer.ts";
import { EXAMPLE_SERIALIZER, type ExampleOfDataset, FEEDBACK_SERIALIZER, toExample } from "../serialization/records.ts";
import { RUN_SERIALIZER, type RunWithFeedback, selectV2Fields, toRunV2 } from "../serialization/run-records.ts";
import { toTracedRun, toTracedRunV2 } from "../serialization/trace-records.ts";
import { runKeyText } from "../sessions/runs.ts";
import { inputsAt, type VersionedExample } from "../storage/examples.ts";
import { feedbackAt } from "../storage/feedback.ts";
import { type FullRun, type RunWithOutputs, runsAt } from "../storage/runs.ts";
import type { DatasetRow, ExperimentRow, FeedbackRow } from "../storage/schema.ts";
import { type FullTraceRun, traceRunsById } from "../storage/trace-search.ts";
import { examplesByIndex, findExampleIndexes, numbersOf } from "./example-indexes.ts";

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;

/** A row of an experiment. A row that was traced has the run that it repeats. */
interface RunOfRow extends RunWithFeedback<FeedbackRow> {
  traced?: FullTraceRun | undefined;
}

interface Row {
  example: VersionedExample;
  runs: RunOfRow[];
}

type WireRun = ExampleWithRuns["runs"][number];

const feedbacks = list(FEEDBACK_SERIALIZER, ({ run, feedback }: RunWithFeedback<FeedbackRow>) => {
  const { experiment_id, run_id, start_us } = run;
  const target = { experiment_id, run_id, run_start_us: start_us, trace_id: run_id };
  return feedback.map((row) => ({ row, target }));
});

const UPLOADED_RUN = new RecordSerializer<RunOfRow, WireRun>({ ...RUN_SERIALIZER.fields, feedbacks });

const toWireRun = (row: RunOfRow): WireRun =>
  row.traced
    ? { ...toTracedRun(row.traced, row.feedback), feedbacks: feedbacks.value(row) }
    : UPLOADED_RUN.toObject(row);

const EXAMPLE_WITH_RUNS = new RecordSerializer<Row & ExampleOfDataset, ExampleWithRuns>({
  ...EXAMPLE_SERIALIZER.fields,
  runs: {
    value: ({ runs }) => runs.map(toWireRun),
    json({ runs }) {
      // Concatenated texts are copied once, when the page is sent.
      let text = "[";
      for (const row of runs)
        text += (text === "[" ? "" : ",") + (row.traced ? JSON.stringify(toWireRun(row)) : UPLOADED_RUN.toJson(row));
      return `${text}]`;
    },
  },
});

export const examplesWithRunsOperations = (database: Database) => ({
  async page(caller: Caller, dataset_id: string, body: ExamplesWithRunsQuery): Promise<JsonPieces<ExampleWithRuns>> {
    const dataset = await getDataset(database.read, caller, dataset_id);
    const experiments = await readExperiments(database, caller, dataset.dataset_no, body.session_ids);
    const sort = body.sort_params && {
      by: body.sort_params.sort_by,
      descending: body.sort_params.sort_order === "DESC",
      loc: ["body", "sort_params", "sort_by"],
    };
    const indexes = await findExampleIndexes(database.read, caller, dataset, experiments, { ...body, sort });
    const limit = Math.min(body.limit ?? DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
    const selected = indexes.slice(body.offset, body.offset + limit);
    const rows = await rowsAt(database.read, dataset, experiments, selected, !body.preview);
    return new JsonPieces(rows.length, (index) => EXAMPLE_WITH_RUNS.toJson({ ...(rows[index] as Row), dataset_id }));
  },

  /** {@link page} of version 2, with selected fields and a cursor. */
  async pageV2(caller: Caller, dataset_id: string, body: ExperimentRunsQuery) {
    const dataset = await getDataset(database.read, caller, dataset_id);
    const experiments = await readExperiments(database, caller, dataset.dataset_no, body.experiment_ids);
    const sort = body.sort && {
      by: sortKeyOf(body.sort.by),
      descending: body.sort.order === "DESC",
      loc: ["body", "sort", "by"],
    };
    const indexes = await findExampleIndexes(database.read, caller, dataset, experiments, { ...body, sort });
    const offset = body.cursor === undefined ? 0 : offsetOf(body.cursor);
    const end = offset + body.page_size;
    const rows = await rowsAt(database.read, dataset, experiments, indexes.slice(offset, end), true);
    const has_more = indexes.length > end;
    return {
      items: rows.map(({ example, runs }) => ({
        ...toExample(example, dataset_id),
        runs: runs.map(
          ({ run, traced, feedback }): Partial<RunV2> =>
            selectV2Fields(traced ? toTracedRunV2(traced, feedback) : toRunV2(run, feedback), body.selects),
        ),
      })),
      has_more,
      ...(has_more && { next_cursor: Buffer.from(String(end)).toString("base64url") }),
    };
  },
});

/** Version 2 accepts feedback keys without the prefix: `correctness` is `feedback.correctness`. */
const sortKeyOf = (by: string): string =>
  by === "latency" || by === "error" || by.startsWith("feedback.") || by.startsWith("delta.") ? by : `feedback.${by}`;

function offsetOf(cursor: string): number {
  const offset = Buffer.from(cursor, "base64url").toString();
  if (!/^\d{1,15}$/.test(offset)) throw new ApiError("bad_cursor");
  return Number(offset);
}

async function rowsAt(
  tx: Tx,
  { tenant_id, dataset_no, dataset_id }: DatasetRow,
  experiments: ExperimentRow[],
  indexes: number[],
  payloads: boolean,
): Promise<Row[]> {
  if (indexes.length === 0) return [];
  const numbers = numbersOf(experiments);
  const examples = await examplesByIndex(tx, dataset_no, indexes);
  const found = await runsAt(tx, numbers, indexes, payloads);
  const traced_ids = found.flatMap(({ is_traced, run_id }) => (is_traced === 1 ? run_id : []));
  const traced = await traceRunsById(tx, tenant_id, traced_ids, payloads);
  const inputsOf = payloads ? await inputsOfRuns(tx, dataset_no, examples, found) : () => undefined;
  const runs = Map.groupBy(found, ({ example_index }) => example_index);
  const feedback = Map.groupBy(await feedbackAt(tx, numbers, indexes), runKeyText);
  const order = new Map(
    experiments.map(({ experiment_no, experiment_id }, at) => [experiment_no, { at, experiment_id }]),
  );
  const at = ({ experiment_no }: RunWithOutputs) => order.get(experiment_no)?.at ?? 0;
  return indexes.flatMap((example_index) => {
    const example = examples.get(example_index);
    if (!example) return [];
    const { example_id } = example;
    const sorted = (runs.get(example_index) ?? []).sort((a, b) => at(a) - at(b) || a.repetition - b.repetition);
    const withFeedback = sorted.map((run) => {
      const experiment_id = order.get(run.experiment_no)?.experiment_id as string;
      const full: FullRun = Object.assign(run, { experiment_id, dataset_id, example_id, inputs: inputsOf(run) });
      return { run: full, traced: traced.get(run.run_id), feedback: feedback.get(runKeyText(run)) ?? [] };
    });
    return [{ example, runs: withFeedback }];
  });
}

/** The inputs of each run. Most runs have the newest version of their example, which is already loaded. */
async function inputsOfRuns(
  tx: Tx,
  dataset_no: number,
  examples: ReadonlyMap<number, VersionedExample>,
  runs: readonly RunWithOutputs[],
): Promise<(run: RunWithOutputs) => string | null> {
  const older = runs.filter(
    ({ example_index, example_version }) => example_version !== examples.get(example_index)?.version,
  );
  const indexes = [...new Set(older.map(({ example_index }) => example_index))];
  const versions = indexes.length === 0 ? [] : await inputsAt(tx, dataset_no, indexes);
  const byVersion = new Map(
    versions.map(({ example_index, version, inputs }) => [`${example_index}/${version}`, inputs]),
  );
  return ({ example_index, example_version }) => {
    const example = examples.get(example_index);
    if (example?.version === example_version) return example.inputs;
    return byVersion.get(`${example_index}/${example_version}`) ?? null;
  };
}
