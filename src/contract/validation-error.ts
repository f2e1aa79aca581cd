import { z } from "@hono/zod-openapi";

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

/** Body of a 422 of the APIs that list all reasons. */
export const httpValidationError = z.object({ detail: z.array(validationError) }).openapi("HTTPValidationError");
