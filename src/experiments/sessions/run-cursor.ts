import { ApiError } from "../../platform/errors.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import type { RunCursor } from "../storage/runs.ts";

/** Encodes the position in a list of runs that is sorted by start time. */
export const writeCursor = ({ start_us, run_id }: RunCursor): string =>
  Buffer.from(JSON.stringify([start_us, run_id])).toString("base64url");

/**
 * @param isId checks the ID in the cursor: by default, a run ID (a UUID); in a list of threads, a thread ID
 * @throws ApiError when the cursor is invalid
 */
export function readCursor(cursor: string, isId: (id: string) => boolean = isUuid): RunCursor {
  try {
    const [start_us, run_id] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Number.isSafeInteger(start_us) && typeof run_id === "string" && isId(run_id)) return { start_us, run_id };
  } catch {
    // The error below reports invalid JSON.
  }
  throw new ApiError("bad_cursor");
}
