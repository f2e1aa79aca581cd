import { z } from "@hono/zod-openapi";
import { jsonResponse } from "../../platform/contract/fields.ts";
import { invalidResponse } from "../../platform/contract/validation-errors.ts";

const plainError = z.object({ detail: z.string() }).openapi("ExperimentsError");

const DESCRIPTIONS = {
  400: "The request is invalid, or conflicts with the current state of the record.",
  404: "The record was not found in this workspace.",
  409: "The request conflicts with an existing record. For example, the name or ID is already in use.",
  413: "The request body is too large.",
} as const;

/** The response of a deletion: the official clients expect a body. */
export const deletedResponse = (description: string) => jsonResponse(z.object({ message: z.string() }), description);

/** The error responses of a route. A 422 response lists every reason; other errors have one message. */
export function errors<C extends keyof typeof DESCRIPTIONS>(...codes: C[]) {
  const entries = codes.map((code) => [code, jsonResponse(plainError, DESCRIPTIONS[code])]);
  return {
    ...(Object.fromEntries(entries) as Record<C, ReturnType<typeof jsonResponse<typeof plainError>>>),
    422: invalidResponse,
  };
}
