import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../page.ts";

export const startRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  component: lazyRouteComponent(() => import("./start-page.tsx"), "StartPage"),
});
