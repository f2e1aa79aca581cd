import { ApiError } from "../../errors.ts";
import type { RunFilter } from "../../storage/experiments/run-filter.ts";
import { FilterError } from "./filter-error.ts";
import { parseFilter } from "./parse.ts";

/**
 * The filters of a request: expressions, and words to search for.
 *
 * @throws ApiError 400 with the place and the reason when an expression cannot be read
 */
export function readFilters(expressions: readonly (string | undefined)[], words = ""): RunFilter[] {
  const searched = words.toLowerCase().split(/\s+/).filter(Boolean);
  const filters = expressions.flatMap((text) => (text === undefined || text.trim() === "" ? [] : read(text)));
  return searched.length > 0 ? [...filters, { op: "search", words: searched }] : filters;
}

function read(text: string): RunFilter {
  try {
    return parseFilter(text);
  } catch (error) {
    if (error instanceof FilterError)
      throw new ApiError("bad_filter", { reason: `The filter cannot be read. ${error.message}` });
    throw error;
  }
}
