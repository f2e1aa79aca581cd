import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../page.ts";

/** The start page at /app. */
export const startRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  component: lazyRouteComponent(() => import("./start-page.tsx"), "StartPage"),
});
