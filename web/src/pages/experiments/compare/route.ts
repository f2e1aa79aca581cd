import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../../page.ts";
import { readSearch } from "./search.ts";

/** Experiments of a dataset side by side. */
export const compareRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/experiments/datasets/$id/compare",
  validateSearch: readSearch,
  component: lazyRouteComponent(() => import("./compare-page.tsx"), "ComparePage"),
});
