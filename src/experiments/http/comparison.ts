import { type App, jsonText } from "../../platform/http/route.ts";
import { experimentRoutes, experimentRoutesV2 } from "../contract/routes.ts";
import type { ExperimentsService } from "../worker/experiments-service.ts";
import { comparisonCsv } from "./comparison-csv.ts";
import { gone } from "./gone.ts";
import { jsonPieces } from "./json-pieces.ts";
import { serveAt } from "./route.ts";

export function serveComparison(
  app: App,
  v1: readonly string[],
  v2: readonly string[],
  { examplesWithRuns, deltas, comparisons, comparative }: ExperimentsService,
): void {
  const routes = experimentRoutes.comparison;

  serveAt(app, v1, experimentRoutes.comparative.createComparative, async ({ caller, body }) =>
    jsonText((await comparative.create(caller, body)).json),
  );

  serveAt(app, v1, experimentRoutes.comparative.deleteComparative, async ({ caller, params, context }) => {
    await comparative.delete(caller, params.comparative_experiment_id);
    return gone(context, "Comparative experiment");
  });

  serveAt(app, v1, experimentRoutes.comparative.listComparative, async ({ caller, params, query }) =>
    jsonText((await comparative.list(caller, params.dataset_id, query)).json),
  );

  serveAt(app, v1, routes.readExamplesWithRuns, async ({ caller, params, query, body, signal }) => {
    if (query.format !== "csv")
      return jsonPieces((await examplesWithRuns.page(caller, params.dataset_id, body)).pieces, signal);
    const page = async (offset: number, limit: number) =>
      (await examplesWithRuns.page(caller, params.dataset_id, { ...body, offset, limit })).value();
    return comparisonCsv(body.session_ids, page);
  });

  serveAt(app, v1, routes.readDelta, async ({ caller, params, body }) =>
    jsonText((await deltas.read(caller, params.dataset_id, body)).json),
  );

  serveAt(app, v1, routes.streamDelta, async ({ caller, params, body }) => {
    const byKey = (await deltas.stream(caller, params.dataset_id, body)).value();
    const events = Object.entries(byKey).map(
      ([key, of]) => `event: data\ndata: ${JSON.stringify({ feedback_deltas: { [key]: of }, errors: null })}\n\n`,
    );
    return new Response(`${events.join("")}event: end\ndata: {}\n\n`, {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
    });
  });

  serveAt(app, v1, routes.compareExperiments, async ({ caller, params, body }) =>
    jsonText((await comparisons.compare(caller, params.dataset_id, body)).json),
  );

  serveAt(app, v2, experimentRoutesV2.queryExperimentRuns, async ({ caller, params, body }) =>
    jsonText((await examplesWithRuns.pageV2(caller, params.dataset_id, body)).json),
  );
}
