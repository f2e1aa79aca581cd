import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../page.ts";

/** Where /app leads: what is running here, and what to do with it. */
export const startRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  component: lazyRouteComponent(() => import("./start-page.tsx"), "StartPage"),
});
