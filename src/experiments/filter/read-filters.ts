import { ApiError } from "../../platform/errors.ts";
import type { RunFilter } from "../storage/run-filter.ts";
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

/**
 * The filter of a request for examples, which have metadata and text, and nothing else of a run.
 *
 * @throws ApiError 400 with the place and the reason when it cannot be read, or is about something else
 */
export function readExampleFilters(expression: string | undefined): RunFilter[] {
  const filters = readFilters([expression]);
  const field = filters.map(fieldOfRuns).find((found) => found !== undefined);
  if (field === undefined) return filters;
  const reason = `The filter cannot be used: examples have metadata and text, and no ${field}, which is of runs.`;
  throw new ApiError("bad_filter", { reason });
}

/** The first thing that a filter says about runs alone. */
function fieldOfRuns(filter: RunFilter): string | undefined {
  switch (filter.op) {
    case "and":
    case "or":
      return filter.of.map(fieldOfRuns).find((found) => found !== undefined);
    case "not":
      return fieldOfRuns(filter.of);
    case "feedback":
      return "feedback";
    case "metadata":
    case "search":
      return undefined;
    default:
      return filter.field;
  }
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
