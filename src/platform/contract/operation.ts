import { errorResponses } from "./fields.ts";
import { invalidResponse } from "./validation-error.ts";

/** Alternatives: who has one of them is let in. `Tenant ID` chooses a workspace; by itself it lets nobody in. */
const SECURITY: Record<string, string[]>[] = [{ "API Key": [] }, { "Tenant ID": [] }, { "Bearer Auth": [] }];

/** How a request may say who it is from, for the document. */
export const securitySchemes = {
  "API Key": { type: "apiKey", in: "header", name: "X-Api-Key" },
  "Tenant ID": { type: "apiKey", in: "header", name: "X-Tenant-Id" },
  "Bearer Auth": { type: "http", scheme: "bearer" },
} as const;

type Method = "get" | "post" | "patch" | "delete";

/**
 * Method, path and id of an operation, and who may use it. The id is the one that FastAPI makes of a function's name: the
 * generated clients of this API are named after it.
 */
export const operation = <M extends Method, P extends string>(name: string, method: M, path: P) => ({
  method,
  path,
  operationId: `${`${name}${path}`.replaceAll(/\W/g, "_")}_${method}`,
  security: SECURITY,
});

/** The `responses` of a route besides its good one: a 422 lists its reasons, every other error is one sentence. */
export const refusals = <C extends 400 | 404 | 409>(...codes: C[]) => ({
  ...errorResponses(...codes),
  422: invalidResponse,
});
