import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { ExperimentsContext } from "../context.ts";
import type { ExamplesWithRunsQuery, ExampleWithRuns } from "../contract/comparison.ts";
import type { ExperimentRunsQuery, RunV2 } from "../contract/v2.ts";
import { JsonPieces } from "../json-pieces.ts";
import { getDataset, getExperimentsOf } from "../lookup.ts";
import { type JudgedRun, RUN, runV2Of, selectedV2 } from "../run-wire.ts";
import { placeKey } from "../runs.ts";
import { listed, Shape } from "../shape.ts";
import { examplesAt, inputsAt, type VersionedExample } from "../storage/examples.ts";
import { feedbackAt } from "../storage/feedback.ts";
import { type FullRun, type RunAt, runsAt } from "../storage/runs.ts";
import type { DatasetRow, ExperimentRow, FeedbackRow } from "../storage/schema.ts";
import { type About, EXAMPLE, type ExampleOfDataset, exampleOf, FEEDBACK } from "../wire.ts";
import { placesToShow } from "./places-to-show.ts";

/** Examples in a page when the request does not say. */
const PAGE = 100;
const MOST = 1000;

/** An example with what several experiments made of it. */
interface Row {
  example: VersionedExample;
  runs: JudgedRun<FeedbackRow>[];
}

const RUN_WITH_FEEDBACK = new Shape<JudgedRun<FeedbackRow>, ExampleWithRuns["runs"][number]>({
  ...RUN.fields,
  feedbacks: listed(FEEDBACK, ({ run, feedback }) => {
    const about = aboutOf(run);
    return feedback.map((row) => ({ row, about }));
  }),
});

const EXAMPLE_WITH_RUNS = new Shape<Row & ExampleOfDataset, ExampleWithRuns>({
  ...EXAMPLE.fields,
  runs: listed(RUN_WITH_FEEDBACK, ({ runs }) => runs),
});

export class ExamplesWithRuns {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async page(caller: Caller, dataset_id: string, body: ExamplesWithRunsQuery): Promise<JsonPieces<ExampleWithRuns>> {
    const { read } = this.#context.database;
    const dataset = await getDataset(read, caller, dataset_id);
    const experiments = await getExperimentsOf(read, caller, dataset.dataset_no, body.session_ids);
    const sort = body.sort_params && {
      by: body.sort_params.sort_by,
      descending: body.sort_params.sort_order === "DESC",
      loc: ["body", "sort_params", "sort_by"],
    };
    const ords = await placesToShow(read, caller, dataset, experiments, { ...body, sort });
    const limit = Math.min(body.limit ?? PAGE, MOST);
    const rows = await rowsAt(read, dataset, experiments, ords.slice(body.offset, body.offset + limit), !body.preview);
    return new JsonPieces(rows.length, (index) => EXAMPLE_WITH_RUNS.textOf({ ...(rows[index] as Row), dataset_id }));
  }

  /** The same in version 2: fields are selected, and pages follow a cursor. */
  async pageV2(caller: Caller, dataset_id: string, body: ExperimentRunsQuery) {
    const { read } = this.#context.database;
    const dataset = await getDataset(read, caller, dataset_id);
    const experiments = await getExperimentsOf(read, caller, dataset.dataset_no, body.experiment_ids);
    const sort = body.sort && {
      by: selectorOf(body.sort.by),
      descending: body.sort.order === "DESC",
      loc: ["body", "sort", "by"],
    };
    const ords = await placesToShow(read, caller, dataset, experiments, { ...body, sort });
    const offset = body.cursor === undefined ? 0 : offsetOf(body.cursor);
    const end = offset + body.page_size;
    const rows = await rowsAt(read, dataset, experiments, ords.slice(offset, end), true);
    const has_more = ords.length > end;
    return {
      items: rows.map(({ example, runs }) => ({
        ...exampleOf(example, dataset_id),
        runs: runs.map(({ run, feedback }): Partial<RunV2> => selectedV2(runV2Of(run, feedback), body.selects)),
      })),
      has_more,
      ...(has_more && { next_cursor: Buffer.from(String(end)).toString("base64url") }),
    };
  }
}

/** Version 2 sorts by feedback, and says so or not: `correctness` is `feedback.correctness`. */
const selectorOf = (by: string): string =>
  by === "latency" || by === "error" || by.startsWith("feedback.") || by.startsWith("delta.") ? by : `feedback.${by}`;

function offsetOf(cursor: string): number {
  const offset = Buffer.from(cursor, "base64url").toString();
  if (!/^\d{1,15}$/.test(offset)) throw new ApiError("bad_cursor");
  return Number(offset);
}

async function rowsAt(
  tx: Tx,
  { dataset_no, dataset_id }: DatasetRow,
  experiments: ExperimentRow[],
  ords: number[],
  payloads: boolean,
): Promise<Row[]> {
  if (ords.length === 0) return [];
  const numbers = experiments.map(({ experiment_no }) => experiment_no);
  const examples = new Map((await examplesAt(tx, dataset_no, ords)).map((example) => [example.ord, example]));
  const found = await runsAt(tx, numbers, ords, payloads);
  const inputsOf = payloads ? await inputsOfRuns(tx, dataset_no, examples, found) : () => undefined;
  const runs = Map.groupBy(found, ({ ord }) => ord);
  const feedback = Map.groupBy(await feedbackAt(tx, numbers, ords), placeKey);
  const order = new Map(
    experiments.map(({ experiment_no, experiment_id }, at) => [experiment_no, { at, experiment_id }]),
  );
  const at = ({ experiment_no }: RunAt) => order.get(experiment_no)?.at ?? 0;
  return ords.flatMap((ord) => {
    const example = examples.get(ord);
    if (!example) return [];
    const { example_id } = example;
    const ofExample = (runs.get(ord) ?? []).sort((a, b) => at(a) - at(b) || a.repetition - b.repetition);
    const judged = ofExample.map((run) => {
      const experiment_id = order.get(run.experiment_no)?.experiment_id as string;
      const full: FullRun = Object.assign(run, { experiment_id, dataset_id, example_id, inputs: inputsOf(run) });
      return { run: full, feedback: feedback.get(placeKey(run)) ?? [] };
    });
    return [{ example, runs: judged }];
  });
}

/** What each run was given: mostly the newest version of its example, which is there already. */
async function inputsOfRuns(
  tx: Tx,
  dataset_no: number,
  examples: ReadonlyMap<number, VersionedExample>,
  runs: readonly RunAt[],
): Promise<(run: RunAt) => string | null> {
  const older = runs.filter(({ ord, example_version }) => example_version !== examples.get(ord)?.version);
  const ords = [...new Set(older.map(({ ord }) => ord))];
  const known = ords.length === 0 ? [] : await inputsAt(tx, dataset_no, ords);
  const byVersion = new Map(known.map(({ ord, version, inputs }) => [`${ord}/${version}`, inputs]));
  return ({ ord, example_version }) => {
    const example = examples.get(ord);
    if (example?.version === example_version) return example.inputs;
    return byVersion.get(`${ord}/${example_version}`) ?? null;
  };
}

const aboutOf = ({ experiment_id, run_id, start_us }: FullRun): About => ({
  experiment_id,
  run_id,
  run_start_us: start_us,
});
