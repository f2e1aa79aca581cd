import type { RouteConfig } from "@hono/zod-openapi";

/** Adds the tag of a group to each of its routes, and the name of the route as its `operationId`. */
export const routeGroup = <T extends Record<string, RouteConfig>>(tag: string, routes: T): T =>
  Object.fromEntries(
    Object.entries(routes).map(([operationId, route]) => [operationId, { operationId, tags: [tag], ...route }]),
  ) as T;
