import { ApiError } from "../../platform/errors.ts";
import { isUuid } from "../../platform/lib/ids.ts";
import type { RunCursor, RunPosition } from "../storage/runs.ts";

const DOTTED_ORDER = /^\d{8}T[0-9a-fTZ.-]{1,20000}$/;

const encode = (start_us: number, text: string): string =>
  Buffer.from(JSON.stringify([start_us, text])).toString("base64url");

/** Encodes the position in a list of runs that is sorted by start time and position in the tree. */
export const writePosition = ({ start_us, dotted_order }: RunPosition): string => encode(start_us, dotted_order);

/** @throws ApiError when the cursor is invalid */
export function readPosition(cursor: string): RunPosition {
  const { start_us, run_id: dotted_order } = readCursor(cursor, (text) => DOTTED_ORDER.test(text));
  return { start_us, dotted_order };
}

/** Encodes the position in a list that is sorted by start time and id. */
export const writeCursor = ({ start_us, run_id }: RunCursor): string => encode(start_us, run_id);

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
