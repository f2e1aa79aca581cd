import { type BaseUrlOptions, baseUrlOf } from "../../platform/http/base-url.ts";
import { type DirectBody, directBodyOf, type Sink, streamedResponse } from "../../platform/http/streamed-body.ts";
import type { ExampleWithRuns } from "../contract/comparison.ts";
import { comparativeRoutes, comparisonRoutes } from "../contract/comparison.ts";
import { experimentRoutesV2 } from "../contract/v2/routes.ts";
import { cellText, csvLines } from "../serialization/csv.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { apiUrlOf, type Routes } from "./route.ts";

export function serveComparison(
  v1: Routes,
  v2: Routes,
  { examplesWithRuns, deltas, comparisons, comparative }: ExperimentsService,
  base_url: BaseUrlOptions,
): void {
  const routes = comparisonRoutes;

  v1.json(comparativeRoutes.createComparative, ({ caller, body }) => comparative.create(caller, body));

  v1.deletion(comparativeRoutes.deleteComparative, "Comparative experiment", ({ caller, params }) =>
    comparative.delete(caller, params.comparative_experiment_id),
  );

  v1.json(comparativeRoutes.listComparative, ({ caller, params, query }) =>
    comparative.list(caller, params.dataset_id, query),
  );

  v1.serve(routes.readExamplesWithRuns, async ({ caller, params, query, body, signal, context }) => {
    const url = apiUrlOf(context, base_url);
    if (query.format !== "csv")
      return jsonPiecesResponse(
        (await examplesWithRuns.page(caller, params.dataset_id, body, url)).pieces,
        signal,
        directBodyOf(context.req.raw),
      );
    const page = async (offset: number, limit: number) =>
      (await examplesWithRuns.page(caller, params.dataset_id, { ...body, offset, limit }, url)).value();
    return comparisonCsv(body.session_ids, page);
  });

  v1.json(routes.readDelta, ({ caller, params, body }) => deltas.read(caller, params.dataset_id, body));

  v1.serve(routes.streamDelta, async ({ caller, params, body }) => {
    const byKey = (await deltas.stream(caller, params.dataset_id, body)).value();
    const events = Object.entries(byKey).map(
      ([key, of]) => `event: data\ndata: ${JSON.stringify({ feedback_deltas: { [key]: of }, errors: null })}\n\n`,
    );
    return new Response(`${events.join("")}event: end\ndata: {}\n\n`, {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    });
  });

  v1.json(routes.compareExperiments, ({ caller, params, body }) =>
    comparisons.compare(caller, params.dataset_id, body),
  );

  v2.json(experimentRoutesV2.queryExperimentRuns, ({ caller, params, body, context }) =>
    examplesWithRuns.pageV2(caller, params.dataset_id, body, baseUrlOf(context, base_url)),
  );
}

function jsonPiecesResponse(
  pieces: AsyncIterable<string>,
  disconnected: AbortSignal,
  direct: DirectBody | undefined,
): Response {
  const write = (sink: Sink) => writePieces(pieces, sink, disconnected);
  return streamedResponse(write, { "content-type": "application/json" }, { direct });
}

/** An error closes the connection, because the status has already been sent. */
async function writePieces(pieces: AsyncIterable<string>, sink: Sink, disconnected: AbortSignal): Promise<void> {
  try {
    for await (const piece of pieces) if (!sink.write(piece)) await sink.drained(disconnected);
    sink.end();
  } catch (error) {
    sink.fail(error);
  }
}

const PAGE_SIZE = 100;

type ReadPage = (offset: number, limit: number) => Promise<ExampleWithRuns[]>;

const RUN_COLUMNS = ["session_id", "run_id", "status", "start_time", "end_time", "latency", "outputs", "error"];

/** Streams a comparison as CSV with one line per run: columns of the example, columns of the run, and one column per feedback key. */
async function comparisonCsv(session_ids: readonly string[], readPage: ReadPage): Promise<Response> {
  const first = await readPage(0, PAGE_SIZE);
  const keys = await keysOf(first, readPage);
  const header = ["example_id", "inputs", "reference_outputs", ...RUN_COLUMNS, ...keys.map((key) => `feedback.${key}`)];
  const encoder = new TextEncoder();
  let offset = 0;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(csvLines([header]))),
    async pull(controller) {
      const examples = offset === 0 ? first : await readPage(offset, PAGE_SIZE);
      offset += PAGE_SIZE;
      const lines = examples.flatMap((example) => linesOf(example, keys));
      if (lines.length > 0) controller.enqueue(encoder.encode(csvLines(lines)));
      if (examples.length < PAGE_SIZE) controller.close();
    },
  });
  const headers = {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="experiments-${session_ids.length}.csv"`,
  };
  return new Response(body, { headers });
}

/** Reads all pages, because the header is sent before the lines and contains all keys. */
async function keysOf(first: ExampleWithRuns[], readPage: ReadPage): Promise<string[]> {
  const keys = new Set<string>();
  let examples = first;
  for (let offset = PAGE_SIZE; ; offset += PAGE_SIZE) {
    for (const { runs } of examples) for (const { feedbacks } of runs) for (const { key } of feedbacks) keys.add(key);
    if (examples.length < PAGE_SIZE) return [...keys].sort();
    examples = await readPage(offset, PAGE_SIZE);
  }
}

function linesOf(example: ExampleWithRuns, keys: readonly string[]): string[][] {
  return example.runs.map((run) => {
    const latency = run.end_time === null ? "" : String((Date.parse(run.end_time) - Date.parse(run.start_time)) / 1000);
    const scores = keys.map((key) => {
      const found = run.feedbacks.find((feedback) => feedback.key === key);
      return found?.score === null || found === undefined ? cellText(found?.value) : String(found.score);
    });
    return [
      example.id,
      JSON.stringify(example.inputs),
      cellText(example.outputs),
      run.session_id,
      run.id,
      run.status,
      run.start_time,
      run.end_time ?? "",
      latency,
      cellText(run.outputs ?? run.outputs_preview),
      run.error ?? "",
      ...scores,
    ];
  });
}
