import type { Database } from "../../src/platform/database/database.ts";
import { type Violation, violations } from "../crash/invariants.ts";
import type { RunNote, ThreadNotes, WireRun } from "./notes.ts";

/** Faults of the service that are known and passed over. Set one to false once it is mended, so that it stays so. */
const KNOWN = {
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
  /**
   * A delayed run is rolled back after runs of the same graph have overtaken it: the thread forgets its graph, so that it
   * shows no state, until the next run names it again.
   */
  graph_forgotten: false,
  /**
   * A run that answers a question is lost after the graph has asked the next one: begun again, it gives the same answer to
   * that one, too.
   */
  answers_twice: false,
};

export const graphMayBeForgotten = ({ runs }: ThreadNotes, left: readonly WireRun[]): boolean =>
  KNOWN.graph_forgotten &&
  left.length > 0 &&
  runs.some(({ delayed, run_id }) => delayed && !left.some((run) => run.run_id === run_id));

/** Whether the thread's record may show other values than its state. */
export const recordMayBeWrong = ({ changes }: ThreadNotes, left: readonly WireRun[]): boolean =>
  (KNOWN.stale_after_delete && changes.some(({ kind }) => kind === "delete")) ||
  (KNOWN.output_ahead && left[0]?.status === "interrupted");

/** Whether a run may have answered more than it was to. */
export const mayAnswerTwice = ({ mode, retried }: RunNote): boolean =>
  KNOWN.answers_twice && mode === "resume" && retried === true;

/** Whether the output of a cancelled run may be a step ahead of its state. */
export const outputMayBeAhead = (): boolean => KNOWN.output_ahead;

/** Whether values may be missing in the thread's state. */
export const stateMayBeWrong = ({ changes, runs }: ThreadNotes): boolean =>
  KNOWN.deleted_under_successor &&
  changes.some(
    ({ kind, token, issued, answered }) =>
      kind === "delete" && runs.some((run) => run.token !== token && run.issued < answered && issued < run.ended),
  );

/** What is wrong with the rows of the whole database. */
export async function unknownViolations(database: Database): Promise<Violation[]> {
  const found = await violations(database.read);
  return found.filter(({ rule }) => !(KNOWN.deleted_under_successor && rule.startsWith("a write of a task belongs")));
}
