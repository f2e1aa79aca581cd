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

/** The operation id is the one that FastAPI derives from a function name: generated clients name their methods after it. */
export const operation = <M extends Method, P extends string>(name: string, method: M, path: P) => ({
  method,
  path,
  operationId: `${`${name}${path}`.replaceAll(/\W/g, "_")}_${method}`,
  security: SECURITY,
});

/** The error `responses` of a route. A 422 lists its reasons, all other errors are one sentence. */
export const refusals = <C extends 400 | 404 | 409>(...codes: C[]) => ({
  ...errorResponses(...codes),
  422: invalidResponse,
});

/** Adds the tag of a group to each of its routes, and the name of the route as its `operationId`. */
export const routeGroup = <T extends Record<string, RouteConfig>>(tag: string, routes: T): T =>
  Object.fromEntries(
    Object.entries(routes).map(([operationId, route]) => [operationId, { operationId, tags: [tag], ...route }]),
  ) as T;
