import { z } from "@hono/zod-openapi";
import { jsonResponse } from "./fields.ts";

/** One reason why a request was refused, as FastAPI writes it: clients read `loc` and `msg`. */
const validationError = z
  .object({
    loc: z.array(z.union([z.string(), z.int()])),
    msg: z.string(),
    type: z.string(),
    input: z.unknown().optional(),
    ctx: z.record(z.string(), z.unknown()).optional(),
  })
  .openapi("ValidationError");

const httpValidationError = z.object({ detail: z.array(validationError) }).openapi("HTTPValidationError");

/** A 422 that lists its reasons. */
export const invalidResponse = jsonResponse(
  httpValidationError,
  "The request does not match this contract; each reason has its place.",
);
