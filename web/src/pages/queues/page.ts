import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { ListChecks } from "lucide-react";
import { type Page, rootRoute, textOf, whenOnline } from "../../page.ts";
import { findQueues } from "./queries.ts";

export const queuesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/queues",
  validateSearch: (search): { q?: string; sort?: string } => ({ q: textOf(search.q), sort: textOf(search.sort) }),
  component: lazyRouteComponent(
    whenOnline(() => import("./queues-page.tsx")),
    "QueuesPage",
  ),
});

/** The number of items that the user has skipped, as a URL has it. */
export const skipOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : undefined;

export const queueRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/queues/$id",
  validateSearch: (search): { skip?: number } => ({ skip: skipOf(search.skip) }),
  component: lazyRouteComponent(
    whenOnline(() => import("./queue-page.tsx")),
    "QueuePage",
  ),
});

const PALETTE_LIMIT = 6;

export const queues: Page = {
  nav: { label: "Queues", to: "/queues", icon: ListChecks, scope: "experiments" },
  routes: [queuesRoute, queueRoute],
  palette: [
    {
      group: "Annotation queues",
      find: async (text, signal) => {
        const found = await findQueues({ name_contains: text || undefined, limit: PALETTE_LIMIT }, signal);
        return found.map(({ id, name }) => ({ label: name, hint: "Annotation queue", to: `/queues/${id}` }));
      },
    },
  ],
};
