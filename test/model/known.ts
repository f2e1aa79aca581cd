import type { ThreadNotes, WireRun } from "./notes.ts";

/** Faults of the service that are known and passed over. Set one to false once it is mended, so that it stays so. */
export const KNOWN = {
  /**
   * A run is deleted while another one is active that never begins: nobody brings the thread's record up to date, so
   * its values stay what they were.
   */
  stale_after_delete: false,
  /**
   * A run that comes to its end while a cancel is on its way: its last step is not committed, and yet its output and the
   * thread's values have it.
   */
  output_ahead: false,
  /**
   * A run is deleted while its successor is under way: what the successor then stores builds on checkpoints and
   * values that are gone.
   */
  deleted_under_successor: false,
};

/** Whether the thread's record may show other values than its state. */
export const recordMayBeWrong = ({ changes }: ThreadNotes, left: readonly WireRun[]): boolean =>
  (KNOWN.stale_after_delete && changes.some(({ kind }) => kind === "delete")) ||
  (KNOWN.output_ahead && left[0]?.status === "interrupted");

/** Whether values may be missing in the thread's state. */
export const stateMayBeWrong = ({ changes, runs }: ThreadNotes): boolean =>
  KNOWN.deleted_under_successor &&
  changes.some(
    ({ kind, token, issued, answered }) =>
      kind === "delete" && runs.some((run) => run.token !== token && run.issued < answered && issued < run.ended),
  );
