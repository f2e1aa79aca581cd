import type { QueryClient } from "@tanstack/react-query";
import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute, whenOnline } from "../../../page.ts";
import { previewKeysOf } from "../preview.ts";
import { datasetQuery, keysQuery } from "../queries.ts";
import { distributionsQuery, rowsQuery, sessionsQuery } from "./queries.ts";
import { narrowingOf, readSearch, type Search } from "./search.ts";
import { chosenIds, shownOf } from "./selected-experiments.ts";

export const compareRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/datasets/$id/compare",
  validateSearch: readSearch,
  beforeLoad: ({ context, params, search, cause }) => {
    if (cause !== "stay") void prefetchComparison(context.client, params.id, search).catch(() => undefined);
  },
  component: lazyRouteComponent(
    whenOnline(() => import("./compare-page.tsx")),
    "ComparePage",
  ),
});

export const compareSearch = (session_ids: readonly string[], baseline?: string) => ({
  experiments: session_ids.join(","),
  ...(baseline !== undefined && { baseline }),
});

/**
 * Prefetches the data of the comparison page while the page's code loads. Errors are ignored here, because the page repeats the queries and
 * shows their errors.
 */
async function prefetchComparison(client: QueryClient, dataset_id: string, search: Search): Promise<void> {
  const ids = chosenIds(search);
  if (ids.length === 0) return;
  void client.prefetchQuery(keysQuery);
  // The dataset contains the ID of the baseline, and the sessions show which IDs in the URL are experiments of the dataset.
  const [dataset, sessions] = await Promise.all([
    client.fetchQuery(datasetQuery(dataset_id)),
    client.fetchQuery(sessionsQuery(dataset_id, ids)),
  ]);
  const named = search.baseline ?? dataset.baseline_experiment_id;
  const shown = shownOf(ids, sessions, named, search.hidden).shown.map(({ id }) => id);
  if (shown.length === 0) return;
  void client.prefetchQuery(rowsQuery(dataset_id, narrowingOf(search, shown, previewKeysOf(dataset_id)), 0));
  void client.prefetchQuery(distributionsQuery(dataset_id, shown));
}
