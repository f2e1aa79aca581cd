import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../../page.ts";
import { fetchAhead } from "./fetch-ahead.ts";
import { readSearch } from "./search.ts";

/** Experiments of a dataset side by side. */
export const compareRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/datasets/$id/compare",
  validateSearch: readSearch,
  beforeLoad: ({ context, params, search, cause }) => {
    if (cause !== "stay") void fetchAhead(context.client, params.id, search).catch(() => undefined);
  },
  component: lazyRouteComponent(() => import("./compare-page.tsx"), "ComparePage"),
});
