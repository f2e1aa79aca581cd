import type { RunStatus } from "../../src/agent-server/contract/records.ts";
import { outputMayBeAhead } from "./known.ts";
import { before, type ChangeNote, type RunNote, type ThreadNotes, type WireRun } from "./notes.ts";
import { deleted, EMPTY, headOf, type Outcome, outcomesOf, updated, type World } from "./reference.ts";

/** Every status in which a run can have been deleted. */
const ENDED: RunStatus[] = ["success", "error", "interrupted", "timeout"];

/** The statuses that a deleted run can have had. Its clients know that its time was up. */
const endingsOf = ({ outputs }: RunNote): RunStatus[] =>
  outputs.some(({ body }) => body?.__error__?.error === "TimeoutError") ? ["timeout"] : ENDED;

/** More places than this in the tree of orders mean that the search is lost, not that the service is wrong. */
const MAX_PLACES = 400_000;

/** A run that counts: it is still there, or was deleted after its end. */
interface Counted {
  note: RunNote;
  statuses: RunStatus[];
  cancelled: boolean;
}

/** The runs whose effect a thread may show, in the order of acceptance: their ids are ordered by time. */
function countedRuns(notes: ThreadNotes, left: readonly WireRun[]): Counted[] {
  const byId = new Map(left.map((run) => [run.run_id, run]));
  const isDeleted = (note: RunNote) =>
    notes.changes.some(({ kind, token }) => kind === "delete" && token === note.token);
  return notes.runs
    .filter((note) => note.run_id !== undefined && (byId.has(note.run_id) || isDeleted(note)))
    .sort((a, b) => ((a.run_id as string) < (b.run_id as string) ? -1 : 1))
    .map((note) => {
      const run = byId.get(note.run_id as string);
      const overtaken = notes.runs.some(
        (other) =>
          other !== note && other.strategy === "interrupt" && !before(other, note) && !(note.ended < other.issued),
      );
      return { note, statuses: run ? [run.status] : endingsOf(note), cancelled: note.cancels.length > 0 || overtaken };
    });
}

/**
 * Whether some state fits in which the thread can be, given what the clients were told: runs took effect in the order of
 * their acceptance, updates and deletions at some moment between question and answer. Times that were up where a run waits
 * explain nearly everything; that some were up elsewhere, on a busy machine, is tried only when they do not, as few as possible
 * first: each makes three times the orders.
 */
export const possibleWorlds = (
  notes: ThreadNotes,
  left: readonly WireRun[],
  fits: (world: World) => boolean,
): boolean => [0, 1, 2, notes.runs.length].some((late) => isPossible(notes, left, fits, late));

function isPossible(
  notes: ThreadNotes,
  left: readonly WireRun[],
  fits: (world: World) => boolean,
  max_late: number,
): boolean {
  const runs = countedRuns(notes, left);
  const ids = new Set(left.map(({ run_id }) => run_id));
  const seen = new Set<string>();

  const search = (world: World, next: number, changes: readonly ChangeNote[], late_left: number): boolean => {
    const place = JSON.stringify([world, next, late_left, changes.map(({ kind, token }) => kind[0] + token)]);
    if (seen.has(place)) return false;
    seen.add(place);
    if (seen.size > MAX_PLACES) throw new Error("The reference model found too many orders to try them all.");
    if (next === runs.length && changes.length === 0) return fits(world);
    const run = runs[next];
    if (run && changes.every((change) => !mustPrecede(change, run.note))) {
      const { note, statuses, cancelled } = run;
      const isFound = (late: boolean) =>
        statuses
          .flatMap((status) => outcomesOf(note, { status, cancelled, late }, world))
          .some(
            (outcome) => answered(note, outcome) && search(outcome.world, next + 1, changes, late_left - Number(late)),
          );
      if (isFound(false) || (late_left > 0 && statuses.length === 1 && isFound(true))) return true;
    }
    for (const change of changes) {
      const others = changes.filter((other) => other !== change);
      if (others.some((other) => before(other, change))) continue;
      if (runs.slice(next).some(({ note }) => mustFollow(change, note))) continue;
      for (const after of effectsOf(change, world)) if (search(after, next, others, late_left)) return true;
    }
    return false;
  };

  /** Of a change without an answer nobody knows whether it happened; a run that is there was not deleted. */
  const effectsOf = (change: ChangeNote, world: World): World[] => {
    const unchanged = change.sure ? [] : [world];
    if (change.kind === "update") return [...updated(change.token, world), ...unchanged];
    const note = notes.runs.find(({ token }) => token === change.token);
    // One that had no effect may have been asked for again.
    return note?.run_id && ids.has(note.run_id) ? [world] : [...deleted(change.token, world), ...unchanged];
  };
  return search(EMPTY, 0, notes.changes, max_late);
}

const mustPrecede = (change: ChangeNote, run: RunNote): boolean => before(change, run);

/** An update needs a thread without active runs, so what was accepted before it has ended before it. */
const mustFollow = (change: ChangeNote, run: RunNote): boolean =>
  change.token === run.token || (change.kind === "update" ? run.answered : run.ended) < change.issued;

/** Whether the run's answers to join and wait say what it had left. */
function answered(run: RunNote, { world, untouched }: Outcome): boolean {
  return run.outputs.every(({ status, body }) => {
    if (status !== 200 || body.__error__) return true;
    if (body.items === undefined) return untouched || headOf(world).items.length === 0;
    const { items, todo } = headOf(world);
    if (outputMayBeAhead() && todo.length === 1 && same(body.items, [...items, ...(todo[0]?.items ?? [])])) return true;
    return same(body.items, items);
  });
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
