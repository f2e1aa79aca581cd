import { whyNotSearchable } from "../platform/contract/searchable.ts";
import { ApiError } from "../platform/errors.ts";

/**
 * Metadata after a change: given keys replace stored ones.
 *
 * @param stored as JSON text
 * @returns JSON text
 * @throws ApiError invalid_request when both together have more than metadata may have
 */
export function mergedMetadata(stored: string, given: object | undefined): string {
  const merged = { ...JSON.parse(stored), ...given };
  const reason = given && whyNotSearchable(merged);
  if (reason) throw new ApiError("invalid_request", { reason: `body.metadata: with what is stored, it ${reason}` });
  return JSON.stringify(merged);
}
