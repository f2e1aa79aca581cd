import { invalidParts } from "../contract/invalid-parts.ts";
import { InvalidRequestError } from "../errors.ts";
import type { Refusal } from "./route.ts";

/** Every reason with its place, as FastAPI lists them. */
export const byPart: Refusal = {
  invalid: (issues, part) => new InvalidRequestError(invalidParts(issues, [part])),
  unreadable: (reason) => new InvalidRequestError([{ loc: ["body"], msg: reason, type: "json_invalid" }]),
};
