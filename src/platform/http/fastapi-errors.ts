import { invalidParts } from "../contract/invalid-parts.ts";
import { InvalidRequestError } from "../errors.ts";
import type { Refusal } from "./route.ts";

/** Every reason with its place, as FastAPI lists them. */
export const byPart: Refusal = {
  invalid: (mismatches) =>
    new InvalidRequestError(
      mismatches.flatMap(({ part, value, issues }) =>
        invalidParts(issues, part === "body" ? value : undefined, [part]),
      ),
    ),
  unreadable: ({ fault: { position, reason: error } }) =>
    new InvalidRequestError([
      { type: "json_invalid", loc: ["body", position], msg: "JSON decode error", input: {}, ctx: { error } },
    ]),
};
