import type { RunStatus, ThreadStatus } from "../../src/agent-server/contract/records.ts";
import { language } from "../support/language.ts";
import type { Kind } from "./commands.ts";
import { mayAnswerTwice } from "./known.ts";
import type { RunNote } from "./notes.ts";

/** A step of a run that is still to come. */
interface Step {
  node: string;
  items: string[];
  throws?: boolean;
  /** It asks two questions. */
  asks?: boolean;
  /** It waits for a door. */
  waits?: boolean;
}

/** Something that a run has written on a checkpoint, perhaps over what another one had. */
interface Layer<T> {
  by: string;
  value: T;
}

/** The last checkpoint that a run, or an update, has made. */
interface Entry {
  by: string;
  items: string[];
  todo: Step[];
  /** Answers that its question has taken, and the one that it has been given. */
  taken: Layer<string[]>[];
  given: Layer<string>[];
  /** A run was stopped here: what its step wrote may be stored already. */
  maybe: boolean;
}

/** A thread: its checkpoints, oldest first, and its status when nothing runs. */
export interface World {
  entries: Entry[];
  rest: ThreadStatus;
}

export const EMPTY: World = { entries: [], rest: "idle" };

export const headOf = ({ entries }: World): Pick<Entry, "items" | "todo" | "taken" | "given" | "maybe"> =>
  entries.at(-1) ?? { items: [], todo: [], taken: [], given: [], maybe: false };

const step = (token: string, node: string, more: Partial<Step> = {}): Step => ({
  node,
  items: [`${token}:${node}`],
  ...more,
});

function planOf(kind: Kind, t: string): Step[] {
  const start = { node: "__start__", items: [`${t}:in`] };
  switch (kind) {
    case "chain":
      return [start, step(t, "a"), step(t, "b"), step(t, "c")];
    case "slow":
    case "endless":
      return [start, step(t, "begin"), step(t, "wait", { waits: true })];
    case "unabortable":
      return [start, step(t, "listen"), step(t, "unabortable", { waits: true })];
    case "nested": {
      const child = step(t, "child", { items: [`${t}:x`, `${t}:y`], waits: true });
      return [start, step(t, "enter"), child, step(t, "leave")];
    }
    case "gate":
      return [start, step(t, "open"), { node: "ask", items: [], asks: true }, { node: "close", items: [] }];
    case "fails":
      return [start, step(t, "try"), { node: "boom", items: [], throws: true }];
  }
}

/** A place where a run can stop. */
interface Stop {
  world: World;
  /** Nothing of the run is stored. */
  untouched: boolean;
  /** The run waits here, or has waited on its way: its time can be up. */
  waited: boolean;
}

interface Walk {
  stops: Stop[];
  end: "success" | "interrupted" | "error";
  final: World;
}

/** Carries a run out, and says where on its way it could have been stopped. */
function walk(run: RunNote, from: World, twice = false): Walk {
  const stops: Stop[] = [];
  let world = from;
  let given = run.mode === "resume" ? run.token : undefined;
  const commit = (items: string[], todo: Step[]) => {
    const others = world.entries.filter(({ by }) => by !== run.token);
    const entry: Entry = { by: run.token, items, todo, taken: [], given: [], maybe: false };
    world = { ...world, entries: [...others, entry] };
    given = undefined;
  };
  let waited = false;
  const stop = (waits = false) => {
    waited ||= waits;
    stops.push({ world, untouched: world === from, waited });
  };
  const ended = (end: Walk["end"]): Walk => ({ stops, end, final: world });

  stop();
  const { items: found, todo: open } = headOf(from);
  // LangGraph for Python continues from any checkpoint, also from one without values.
  const isBlank = language === "python" ? from.entries.length === 0 : found.length === 0 && open.length === 0;
  if (isBlank && run.mode === "continue") return ended("error");
  if (isBlank && run.mode === "resume") commit([], []);
  if (run.mode === "input") commit(headOf(world).items, planOf(run.kind, run.token));
  for (;;) {
    const { items, todo } = headOf(world);
    const [next, ...later] = todo;
    if (given !== undefined) world = write(world, "given", { by: run.token, value: given });
    stop(next?.waits);
    if (!next) return ended("success");
    if (next.throws) return ended("error");
    if (!next.asks) {
      commit([...items, ...next.items], later);
      continue;
    }
    const head = headOf(world);
    const answers = [...(head.taken.at(-1)?.value ?? [])];
    // LangGraph keeps the answer it was given, and gives it again to a run that brings none of its own.
    const one = head.given.at(-1)?.value;
    if (answers.length < 2 && one !== undefined) answers.push(one);
    if (answers.length < 2 && one !== undefined && twice) answers.push(one);
    if (answers.length > 0) {
      stop(true);
      world = write(world, "taken", { by: run.token, value: answers });
      stop(true);
    }
    const [first, second] = answers;
    if (second === undefined) return ended("interrupted");
    const done = [`${first}:q1`, `${second}:q2`];
    commit([...items, ...done], [step(second, "close")]);
  }
}

/** Writes on the newest checkpoint, in a layer of the run's own. */
function write<K extends "given" | "taken">(world: World, key: K, layer: Entry[K][number]): World {
  const head = world.entries.at(-1);
  if (!head) return world;
  const beneath = (head[key] as Layer<unknown>[]).filter(({ by }) => by !== layer.by);
  return { ...world, entries: [...world.entries.slice(0, -1), { ...head, [key]: [...beneath, layer] }] };
}

const stopped = ({ mode }: RunNote, { world, untouched }: Stop, rest: ThreadStatus): World => {
  const head = world.entries.at(-1);
  if (!head || (untouched && mode === "input")) return { ...world, rest };
  return { entries: [...world.entries.slice(0, -1), { ...head, maybe: true }], rest };
};

/** What a run can have left. `untouched`: it is not there at all. */
export interface Outcome {
  world: World;
  untouched: boolean;
}

/** All that a run can have left behind which ended like this. */
export function outcomesOf(run: RunNote, ending: Ending, from: World): Outcome[] {
  const walks = mayAnswerTwice(run) ? [walk(run, from), walk(run, from, true)] : [walk(run, from)];
  return walks.flatMap((one) => outcomesAlong(one, run, ending, from));
}

/** How a run ended. */
interface Ending {
  status: RunStatus;
  /** Somebody may have cancelled it. */
  cancelled: boolean;
  /** Its time may have been up at any step, and not only where it waits. */
  late: boolean;
}

function outcomesAlong(
  { stops, end, final }: Walk,
  run: RunNote,
  { status, cancelled, late }: Ending,
  from: World,
): Outcome[] {
  const outcomes: Outcome[] = [];
  const finish = (rest: ThreadStatus) => outcomes.push({ world: { ...final, rest }, untouched: final === from });
  if (status === "success" && end === "success") finish("idle");
  if (status === "error" && end === "error") finish("error");
  if (status === "interrupted" && end === "interrupted") finish("interrupted");
  if (status === "interrupted" && cancelled) {
    for (const at of stops) outcomes.push({ world: stopped(run, at, "idle"), untouched: at.untouched });
    // One that never began leaves the thread as it was.
    outcomes.push({ world: from, untouched: true });
  }
  if (status === "timeout") {
    // A run that waits uses up its time, and leaves little for the steps behind the door.
    for (const at of stops)
      if (at.waited || late) outcomes.push({ world: stopped(run, at, "error"), untouched: at.untouched });
  }
  return outcomes;
}

/** A state update as the node `c`, which nothing follows: what was still to do is dropped. */
export function updated(token: string, from: World): World[] {
  const { items, todo, maybe } = headOf(from);
  const put = (before: string[]): World => ({
    entries: [...from.entries, { by: token, items: [...before, token], todo: [], taken: [], given: [], maybe: false }],
    rest: "idle",
  });
  // LangGraph takes in what finished tasks have stored.
  return maybe && todo[0] ? [put(items), put([...items, ...todo[0].items])] : [put(items)];
}

/** A run is deleted with its checkpoints and what it wrote on those of others. */
export function deleted(token: string, from: World): World[] {
  const isOthers = ({ by }: { by: string }) => by !== token;
  const entries = from.entries.filter(isOthers).map((entry) => ({
    ...entry,
    taken: entry.taken.filter(isOthers),
    given: entry.given.filter(isOthers),
  }));
  // The thread's record is brought up to date unless a run is active.
  const rests = new Set<ThreadStatus>([from.rest, "idle", "interrupted"]);
  return [...rests].map((rest) => ({ entries, rest }));
}
