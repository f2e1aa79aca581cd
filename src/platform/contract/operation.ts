import type { RouteConfig } from "@hono/zod-openapi";
import { errorResponses } from "./fields.ts";
import { invalidResponse } from "./validation-errors.ts";

/** Alternative credentials. `Tenant ID` selects a workspace and grants no access by itself. */
const SECURITY: Record<string, string[]>[] = [{ "API Key": [] }, { "Tenant ID": [] }, { "Bearer Auth": [] }];

export const securitySchemes = {
  "API Key": { type: "apiKey", in: "header", name: "X-Api-Key" },
  "Tenant ID": { type: "apiKey", in: "header", name: "X-Tenant-Id" },
  "Bearer Auth": { type: "http", scheme: "bearer" },
} as const;

type Method = "get" | "post" | "patch" | "delete";

/** The operation ID has FastAPI's format for the function `name`, because generated clients name their methods after it. */
export const operation = <M extends Method, P extends string>(name: string, method: M, path: P) => ({
  method,
  path,
  operationId: `${`${name}${path}`.replaceAll(/\W/g, "_")}_${method}`,
  security: SECURITY,
});

/** The error `responses` of a route. The body of a 422 lists all invalid fields; other errors have one message. */
export const refusals = <C extends 400 | 404 | 409>(...codes: C[]) => ({
  ...errorResponses(...codes),
  422: invalidResponse,
});

/** Adds the tag to each route and the route's key as its `operationId`, unless the route has its own. */
export const routeGroup = <T extends Record<string, RouteConfig>>(tag: string, routes: T): T =>
  Object.fromEntries(
    Object.entries(routes).map(([operationId, route]) => [operationId, { operationId, tags: [tag], ...route }]),
  ) as T;
