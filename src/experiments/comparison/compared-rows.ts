import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { ExperimentsContext } from "../context.ts";
import type {
  ComparedCell,
  ComparedRow,
  ComparedRowsQuery,
  ComparedRows as OnWire,
} from "../contract/app-comparison.ts";
import { getDataset, getExperimentsOf } from "../lookup.ts";
import { scoresOf, secondsOf, vectorOf } from "../stats.ts";
import { examplesAt, placesOf } from "../storage/examples.ts";
import { feedbackAt } from "../storage/feedback.ts";
import { type RunAt, runsAt } from "../storage/runs.ts";
import type { FeedbackRow } from "../storage/schema.ts";
import { previewOf } from "../upload/staged-row.ts";
import { parsed } from "../wire.ts";
import { type Compared, narrowed, ordered } from "./narrowing.ts";
import { placesToShow } from "./places-to-show.ts";
import { removedPlaces } from "./removed-places.ts";

/** Characters of an error in a table. */
const ERROR_CHARS = 200;

/** The table of the compare page: the beginnings of all texts, so that a page of 100 × 10 is 0.4 MB instead of 6. */
export class ComparedRows {
  readonly #context: ExperimentsContext;

  constructor(context: ExperimentsContext) {
    this.#context = context;
  }

  async read(caller: Caller, dataset_id: string, body: ComparedRowsQuery): Promise<OnWire> {
    const { read } = this.#context.database;
    const dataset = await getDataset(read, caller, dataset_id);
    const experiments = await getExperimentsOf(read, caller, dataset.dataset_no, body.session_ids);
    for (const session_id of namedIn(body))
      if (!experiments.some(({ experiment_id }) => experiment_id === session_id))
        throw new ApiError("session_elsewhere", { session_id });
    const compared = { dataset, experiments, removed: await removedPlaces(read, dataset) };
    const shown = await placesToShow(read, caller, dataset, experiments, { filters: body.filters });
    const some = await narrowed(read, compared, shown, body);
    const ords = body.order ? await ordered(read, compared, some, body.order) : some;
    return {
      total: ords.length,
      position: body.example_id === undefined ? null : await positionOf(read, compared, ords, body.example_id),
      rows: await rowsAt(read, compared, ords.slice(body.offset, body.offset + body.limit)),
    };
  }
}

const namedIn = ({ scores = [], change, failed = [], order }: ComparedRowsQuery): string[] => [
  ...scores.map(({ session_id }) => session_id),
  ...failed,
  ...[change, order].flatMap((named) => named?.session_id ?? []),
];

async function positionOf(tx: Tx, { dataset }: Compared, ords: number[], example_id: string): Promise<number | null> {
  const place = (await placesOf(tx, dataset.dataset_no)).find((known) => known.example_id === example_id);
  const position = place ? ords.indexOf(place.ord) : -1;
  return position === -1 ? null : position;
}

async function rowsAt(tx: Tx, { dataset, experiments }: Compared, ords: number[]): Promise<ComparedRow[]> {
  if (ords.length === 0) return [];
  const numbers = experiments.map(({ experiment_no }) => experiment_no);
  const examples = new Map((await examplesAt(tx, dataset.dataset_no, ords)).map((example) => [example.ord, example]));
  const cellKey = ({ experiment_no, ord }: { experiment_no: number; ord: number | null }) => `${experiment_no} ${ord}`;
  const runs = Map.groupBy(await runsAt(tx, numbers, ords, false), cellKey);
  const feedback = Map.groupBy(await feedbackAt(tx, numbers, ords), cellKey);
  return ords.flatMap((ord) => {
    const example = examples.get(ord);
    if (!example) return [];
    const cells = numbers.map((experiment_no) => {
      const key = cellKey({ experiment_no, ord });
      return cellOf(runs.get(key) ?? [], feedback.get(key) ?? []);
    });
    const expected = parsed(example.outputs);
    return {
      example_id: example.example_id,
      number: ord + 1,
      inputs_preview: previewOf(parsed(example.inputs) ?? {}),
      expected_preview: expected && previewOf(expected),
      cells,
    };
  });
}

function cellOf(runs: RunAt[], feedback: FeedbackRow[]): ComparedCell | null {
  const [first] = runs;
  if (!first) return null;
  const failed = runs.filter(({ error }) => error !== null);
  const scores: Record<string, number> = {};
  const labels: Record<string, string> = {};
  for (const [key, of] of Map.groupBy(feedback, ({ key }) => key)) {
    const [score] = vectorOf(scoresOf(of).map((placed) => ({ ...placed, ord: 0 })));
    if (score !== undefined) scores[key] = score;
    const label = of.find(({ value }) => value?.startsWith('"'))?.value;
    if (label) labels[key] = JSON.parse(label) as string;
  }
  return {
    runs: runs.length,
    errors: failed.length,
    error: failed[0]?.error?.slice(0, ERROR_CHARS).toWellFormed() ?? null,
    outputs_preview: first.outputs_preview,
    latency_s: runs.reduce((sum, run) => sum + secondsOf(run), 0) / runs.length,
    scores,
    labels,
  };
}
