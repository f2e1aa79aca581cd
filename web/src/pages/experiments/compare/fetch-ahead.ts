import type { QueryClient } from "@tanstack/react-query";
import { configsQuery, datasetQuery, distributionsQuery, rowsQuery, sessionsQuery } from "./queries.ts";
import { narrowingOf, type Search } from "./search.ts";
import { chosenIds, shownOf } from "./shown.ts";

/**
 * Asks for all that the first rows need while the page's own code is still being loaded, rows before what is less urgent. It tells
 * nothing: the page asks the same questions, and says what went wrong.
 */
export async function fetchAhead(client: QueryClient, dataset_id: string, search: Search): Promise<void> {
  const ids = chosenIds(search);
  if (ids.length === 0) return;
  void client.prefetchQuery(configsQuery);
  // Which one is the baseline only the dataset says, and which of the address are its experiments.
  const [dataset, sessions] = await Promise.all([
    client.fetchQuery(datasetQuery(dataset_id)),
    client.fetchQuery(sessionsQuery(dataset_id, ids)),
  ]);
  const named = search.baseline ?? dataset.baseline_experiment_id;
  const shown = shownOf(ids, sessions, named, search.hidden).shown.map(({ id }) => id);
  if (shown.length === 0) return;
  void client.prefetchQuery(rowsQuery(dataset_id, narrowingOf(search, shown), 0));
  void client.prefetchQuery(distributionsQuery(dataset_id, shown));
}
