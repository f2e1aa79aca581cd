import { unsearchableReason } from "../platform/contract/fields.ts";
import { ApiError } from "../platform/errors.ts";

/**
 * Merges metadata key by key. `stored` and the result are JSON texts.
 *
 * @throws ApiError invalid_request if the merged metadata exceeds the limits
 */
export function mergedMetadata(stored: string, given: object | undefined): string {
  const merged = { ...JSON.parse(stored), ...given };
  const reason = given && unsearchableReason(merged);
  if (reason)
    throw new ApiError("invalid_request", {
      reason: `body.metadata: the merged metadata (stored and new) ${reason}`,
    });
  return JSON.stringify(merged);
}
