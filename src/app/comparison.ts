import { comparisonPageRoutes } from "../experiments/contract/app-comparison.ts";
import type { ExperimentsService } from "../experiments/index.ts";
import { byPart } from "../platform/http/fastapi-errors.ts";
import { type App, answer, jsonText } from "../platform/http/route.ts";

/** What the compare page asks and the experiments API has no route for. */
export function serveComparisonPage(app: App, { comparedRows, distributions }: ExperimentsService): void {
  const { readComparedRows, readDistributions } = comparisonPageRoutes;

  answer(
    app,
    readComparedRows,
    async ({ caller, params, body }) => jsonText((await comparedRows.read(caller, params.dataset_id, body)).json),
    byPart,
  );

  answer(
    app,
    readDistributions,
    async ({ caller, params, body }) => jsonText((await distributions.read(caller, params.dataset_id, body)).json),
    byPart,
  );
}
