import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute, whenOnline } from "../../page.ts";

export const startRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  component: lazyRouteComponent(
    whenOnline(() => import("./start-page.tsx")),
    "StartPage",
  ),
});
