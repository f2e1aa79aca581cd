import type { QueryClient } from "@tanstack/react-query";
import { createRouter } from "@tanstack/react-router";
import { APP_PATH } from "./api/base.ts";
import { Frame } from "./frame/frame.tsx";
import { NoSuchPage } from "./frame/no-such-page.tsx";
import { rootRoute } from "./page.ts";
import { startRoute } from "./pages/start/page.ts";
import { pages } from "./pages.ts";
import { ErrorState } from "./ui/states.tsx";

export const createAppRouter = (client: QueryClient) =>
  createRouter({
    routeTree: rootRoute
      .update({ component: Frame, notFoundComponent: NoSuchPage })
      .addChildren([startRoute, ...pages.flatMap((page) => page.routes)]),
    basepath: APP_PATH,
    context: { client },
    defaultPreload: "intent",
    defaultErrorComponent: ({ error, reset }) => <ErrorState error={error as Error} retry={reset} />,
    // Data is React Query's; the router keeps none.
    defaultPreloadStaleTime: 0,
  });
