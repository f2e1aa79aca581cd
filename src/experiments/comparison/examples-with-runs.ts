import type { Caller } from "../../platform/contract/caller.ts";
import type { Database, Tx } from "../../platform/database/database.ts";
import type { ExamplesWithRunsQuery, ExampleWithRuns } from "../contract/comparison.ts";
import type { Example } from "../contract/datasets/examples.ts";
import type { ExperimentRunsQuery } from "../contract/v2/runs.ts";
import { JsonPieces } from "../json-pieces.ts";
import { attachmentUrlsOf, cursorOfOffset, getDataset, offsetOfCursor, readExperiments } from "../lookups.ts";
import { list, RecordSerializer } from "../serialization/record-serializer.ts";
import {
  attachmentUrl,
  EXAMPLE_SERIALIZER,
  type ExampleOfDataset,
  FEEDBACK_SERIALIZER,
  toAttachmentUrls,
  toExample,
} from "../serialization/records.ts";
import { RUN_SERIALIZER, type RunWithFeedback, selectedNames } from "../serialization/run-records.ts";
import { type RunRelatives, toTracedRun } from "../serialization/trace-records.ts";
import { type FoundRun, runKeyText, toAnyRunsV2 } from "../sessions/runs.ts";
import { allVersionsAt, type VersionedExample } from "../storage/examples.ts";
import { feedbackAt, type ShownFeedback } from "../storage/feedback.ts";
import { type FullRun, type RunWithOutputs, runsAt } from "../storage/runs.ts";
import type { DatasetRow, ExampleVersionRow, ExperimentRow } from "../storage/schema.ts";
import { attachmentsOf, type FullTraceRun, runsOfTraces, traceRunsById } from "../storage/traces/trace-search.ts";
import { examplesByIndex, findExampleIndexes, numbersOf } from "./example-indexes.ts";

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;

/** A run of an experiment, with its feedback. If the run repeats the root run of a trace, `traced` is that root run. */
interface RunOfRow extends RunWithFeedback<ShownFeedback> {
  traced?: FullTraceRun | undefined;
  /** Undefined in a preview. */
  relatives?: RunRelatives | undefined;
}

interface Row {
  example: VersionedExample;
  runs: RunOfRow[];
  attachment_urls?: Example["attachment_urls"];
}

type WireRun = ExampleWithRuns["runs"][number];

const feedbacks = list(FEEDBACK_SERIALIZER, ({ run, feedback }: RunWithFeedback<ShownFeedback>) => {
  const { experiment_id, run_id, start_us } = run;
  const target = { experiment_id, run_id, run_start_us: start_us, trace_id: run_id };
  return feedback.map((row) => ({ row, target }));
});

const UPLOADED_RUN = new RecordSerializer<RunOfRow, WireRun>({ ...RUN_SERIALIZER.fields, feedbacks });

const toWireRun = (row: RunOfRow): WireRun =>
  row.traced
    ? { ...toTracedRun(row.traced, row.feedback, row.relatives), feedbacks: feedbacks.value(row) }
    : UPLOADED_RUN.toObject(row);

const EXAMPLE_WITH_RUNS = new RecordSerializer<Row & ExampleOfDataset, ExampleWithRuns>({
  ...EXAMPLE_SERIALIZER.fields,
  runs: {
    value: ({ runs }) => runs.map(toWireRun),
    json({ runs }) {
      // V8 copies concatenated strings only once, when the page is sent.
      let text = "[";
      for (const row of runs)
        text += (text === "[" ? "" : ",") + (row.traced ? JSON.stringify(toWireRun(row)) : UPLOADED_RUN.toJson(row));
      return `${text}]`;
    },
  },
});

export const examplesWithRunsOperations = (database: Database) => ({
  /** @param base_url the address of this API as the client sees it, for the links to attachments */
  async page(
    caller: Caller,
    dataset_id: string,
    body: ExamplesWithRunsQuery,
    base_url: string,
  ): Promise<JsonPieces<ExampleWithRuns>> {
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
    if (!body.preview) await addRelatives(database.read, dataset, rows, base_url);
    return new JsonPieces(rows.length, (index) => EXAMPLE_WITH_RUNS.toJson({ ...(rows[index] as Row), dataset_id }));
  },

  /** Like {@link page}, for version 2 of the API: with selected fields and a cursor. */
  async pageV2(caller: Caller, dataset_id: string, body: ExperimentRunsQuery, base_url: string) {
    const dataset = await getDataset(database.read, caller, dataset_id);
    const experiments = await readExperiments(database, caller, dataset.dataset_no, body.experiment_ids);
    const sort = body.sort && {
      by: sortKeyOf(body.sort.by),
      descending: body.sort.order === "DESC",
      loc: ["body", "sort", "by"],
    };
    const indexes = await findExampleIndexes(database.read, caller, dataset, experiments, { ...body, sort });
    const offset = body.cursor === undefined ? 0 : offsetOfCursor(body.cursor);
    const end = offset + body.page_size;
    const rows = await rowsAt(database.read, dataset, experiments, indexes.slice(offset, end), true);
    const has_more = indexes.length > end;
    const examples = rows.map(({ example }) => example);
    const urls = await attachmentUrlsOf(database.read, dataset.dataset_no, examples, `${base_url}/api/v1`);
    const found = rows.flatMap(({ runs }) =>
      runs.map(
        ({ run, traced, feedback }): FoundRun =>
          traced ? { kind: "traced", run: traced, feedback } : { kind: "uploaded", run, feedback },
      ),
    );
    const records = await toAnyRunsV2(database.read, found, base_url, selectedNames(body.selects));
    return {
      items: rows.map(({ example, runs }) => ({
        ...toExample(example, dataset_id, urls.get(example)),
        runs: records.splice(0, runs.length),
      })),
      has_more,
      ...(has_more && { next_cursor: cursorOfOffset(end) }),
    };
  },
});

/** Version 2 accepts feedback keys without the prefix: `correctness` is `feedback.correctness`. */
const sortKeyOf = (by: string): string =>
  by === "latency" || by === "error" || by.startsWith("feedback.") || by.startsWith("delta.") ? by : `feedback.${by}`;

async function rowsAt(
  tx: Tx,
  { tenant_id, dataset_no, dataset_id }: DatasetRow,
  experiments: ExperimentRow[],
  indexes: number[],
  payloads: boolean,
): Promise<Row[]> {
  if (indexes.length === 0) return [];
  const numbers = numbersOf(experiments);
  // On Postgres, each statement has its own connection: the next one is executed while the rows of the last one are parsed. The first one
  // gets the connection that was used last: on another one, every tenth large result arrives 40 ms later, the time after which TCP
  // acknowledges (p95 of a page 63 instead of 35 ms).
  const [found, feedbackRows, examples] = await Promise.all([
    runsAt(tx, numbers, indexes, payloads),
    feedbackAt(tx, numbers, indexes),
    examplesByIndex(tx, dataset_no, indexes),
  ]);
  const traced_ids = found.flatMap(({ is_traced, run_id }) => (is_traced === 1 ? run_id : []));
  const traced = await traceRunsById(tx, tenant_id, traced_ids, payloads);
  const contentOf = await contentsOfRuns(tx, dataset_no, examples, found);
  const inputsOf = (run: RunWithOutputs) => (payloads ? (contentOf(run)?.inputs ?? null) : undefined);
  const runs = Map.groupBy(found, ({ example_index }) => example_index);
  const feedback = Map.groupBy(feedbackRows, runKeyText);
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
      const full: FullRun = { ...run, experiment_id, dataset_id, example_id, inputs: inputsOf(run) };
      return { run: full, traced: traced.get(run.run_id), feedback: feedback.get(runKeyText(run)) ?? [] };
    });
    return [{ example: exampleOfRuns(example, sorted, contentOf), runs: withFeedback }];
  });
}

/** Adds the fields that previews omit: the descendants of traced runs, and attachments. */
async function addRelatives(tx: Tx, { tenant_id, dataset_no }: DatasetRow, rows: Row[], base_url: string) {
  const examples = rows.map(({ example }) => example);
  const urls = await attachmentUrlsOf(tx, dataset_no, examples, base_url);
  for (const row of rows) row.attachment_urls = urls.get(row.example) ?? null;
  const runs = rows.flatMap((row) => row.runs).filter(({ traced }) => traced);
  const traces = runs.map(({ traced }) => traced as FullTraceRun);
  const ids = traces.map(({ run_id }) => run_id);
  const below = Map.groupBy(await runsOfTraces(tx, tenant_id, ids), ({ trace_id }) => trace_id);
  const numbers = traces.map(({ run_no }) => run_no);
  const attachments = Map.groupBy(await attachmentsOf(tx, numbers), ({ run_no }) => run_no);
  for (const run of runs) {
    const { run_id, run_no } = run.traced as FullTraceRun;
    run.relatives = {
      below: below.get(run_id) ?? [],
      attachments: toAttachmentUrls(attachments.get(run_no) ?? [], attachmentUrl(base_url)),
    };
  }
}

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
