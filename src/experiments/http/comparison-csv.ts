import { stringify } from "csv-stringify/sync";
import type { ExampleWithRuns } from "../contract/comparison.ts";

/** Examples that are read at a time. */
const PAGE = 100;

type Page = (offset: number, limit: number) => Promise<ExampleWithRuns[]>;

const RUN_COLUMNS = [
  "session_id",
  "run_id",
  "status",
  "start_time",
  "end_time",
  "latency",
  "outputs",
  "error",
] as const;

/** A comparison as CSV, one line a run, written while it is read: example, run, then a column for each score. */
export async function comparisonCsv(session_ids: readonly string[], page: Page): Promise<Response> {
  const first = await page(0, PAGE);
  const keys = await keysOf(first, page);
  const header = ["example_id", "inputs", "reference_outputs", ...RUN_COLUMNS, ...keys.map((key) => `feedback.${key}`)];
  const encoder = new TextEncoder();
  let offset = 0;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(stringify([header]))),
    async pull(controller) {
      const examples = offset === 0 ? first : await page(offset, PAGE);
      offset += PAGE;
      const lines = examples.flatMap((example) => linesOf(example, keys));
      if (lines.length > 0) controller.enqueue(encoder.encode(stringify(lines)));
      if (examples.length < PAGE) controller.close();
    },
  });
  const headers = {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="experiments-${session_ids.length}.csv"`,
  };
  return new Response(body, { headers });
}

/** All keys that occur: the header comes before the lines. */
async function keysOf(first: ExampleWithRuns[], page: Page): Promise<string[]> {
  const keys = new Set<string>();
  let examples = first;
  for (let offset = PAGE; ; offset += PAGE) {
    for (const { runs } of examples) for (const { feedbacks } of runs) for (const { key } of feedbacks) keys.add(key);
    if (examples.length < PAGE) return [...keys].sort();
    examples = await page(offset, PAGE);
  }
}

function linesOf(example: ExampleWithRuns, keys: readonly string[]): string[][] {
  return example.runs.map((run) => {
    const latency = run.end_time === null ? "" : String((Date.parse(run.end_time) - Date.parse(run.start_time)) / 1000);
    const scores = keys.map((key) => {
      const found = run.feedbacks.find((feedback) => feedback.key === key);
      return found?.score === null || found === undefined ? textOf(found?.value) : String(found.score);
    });
    return [
      example.id,
      JSON.stringify(example.inputs),
      textOf(example.outputs),
      run.session_id,
      run.id,
      run.status,
      run.start_time,
      run.end_time ?? "",
      latency,
      textOf(run.outputs ?? run.outputs_preview),
      run.error ?? "",
      ...scores,
    ].map(harmless);
  });
}

const textOf = (value: unknown): string =>
  value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

/** A spreadsheet takes a cell that begins like this for a formula, and would carry it out. */
const FORMULA = /^[=+@\t\r-]/;

/** What begins like a formula and is a number stays one; `-1+cmd|' /C calc'!A0` is none. */
const NEGATIVE = /^-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

const harmless = (cell: string): string => (FORMULA.test(cell) && !NEGATIVE.test(cell) ? `'${cell}` : cell);
