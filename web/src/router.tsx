import type { QueryClient } from "@tanstack/react-query";
import { type AnyRoute, createRouter, Link } from "@tanstack/react-router";
import { APP_PATH } from "./api/request.ts";
import { target } from "./api/target.ts";
import { Frame } from "./frame/frame.tsx";
import { Page } from "./frame/header.tsx";
import { type Page as PageModule, rootRoute } from "./page.ts";
import { startRoute } from "./pages/start/page.ts";
import { pages } from "./pages.ts";
import { Button } from "./ui/button.tsx";
import { EmptyState, ErrorState } from "./ui/states.tsx";

/** Adds the target to all addresses of a page whose content depends on it. */
const withTarget = <R extends AnyRoute>(route: R): R =>
  route.update({ search: { middlewares: [({ search, next }) => ({ ...next(search), target: target() })] } });

const routesOf = ({ nav, routes }: PageModule): readonly AnyRoute[] =>
  nav.scope === "agents" ? routes.map(withTarget) : routes;

export const createAppRouter = (client: QueryClient) =>
  createRouter({
    routeTree: rootRoute
      .update({ component: Frame, notFoundComponent: NoSuchPage })
      .addChildren([withTarget(startRoute), ...pages.flatMap(routesOf)]),
    basepath: APP_PATH,
    context: { client },
    defaultPreload: "intent",
    defaultErrorComponent: ({ error, reset }) => <ErrorState error={error as Error} retry={reset} />,
    // React Query caches the data, so the router does not need to.
    defaultPreloadStaleTime: 0,
  });

function NoSuchPage() {
  return (
    <Page title="Page not found">
      <EmptyState
        title="Nothing was found at this URL"
        action={
          <Button asChild>
            <Link to="/">Go to the home page</Link>
          </Button>
        }
      >
        The resource may have been deleted, or the URL may be incomplete.
      </EmptyState>
    </Page>
  );
}
