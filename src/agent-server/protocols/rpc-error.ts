import { isUnavailable } from "../../platform/database/database-errors.ts";
import { ApiError } from "../../platform/errors.ts";

/** Returns the error for the client of a protocol with its own error responses. The cause of a 5xx is for the log only. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return isUnavailable(error)
    ? new ApiError("unavailable", { reason: "The database is unavailable. Try again." }, error)
    : new ApiError("internal", {}, error);
}
