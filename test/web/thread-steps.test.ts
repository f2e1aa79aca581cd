import { expect, it } from "vitest";
import { branchOf, type StepState, stepsOf } from "../../web/src/pages/threads/side/steps.ts";

const at = (ms: number) => new Date(1_800_000_000_000 + ms).toISOString();

/** A checkpoint that the tasks of its parent wrote. */
const checkpoint = (step: number, run_id: string, ms: number, next?: string): StepState =>
  ({
    values: {},
    next: next === undefined ? [] : [next],
    tasks: next === undefined ? [] : [{ id: next, name: next, result: { messages: [] }, interrupts: [] }],
    metadata: { source: "loop", step, run_id },
    created_at: at(ms),
    checkpoint: { thread_id: "t", checkpoint_ns: "", checkpoint_id: `c${step}` },
    parent_checkpoint: step === 0 ? null : { thread_id: "t", checkpoint_ns: "", checkpoint_id: `c${step - 1}` },
  }) as unknown as StepState;

it("counts the time of a node without the wait for a person before its run", () => {
  const states = [
    checkpoint(2, "second", 90_050),
    checkpoint(1, "first", 300, "approve"),
    checkpoint(0, "first", 100, "agent"),
  ];
  const starts = new Map([
    ["first", at(0)],
    ["second", at(90_000)],
  ]);
  expect(stepsOf(states, starts, new Map()).map(({ nodes, duration_ms }) => [...nodes, duration_ms])).toEqual([
    ["approve", 50],
    ["agent", 200],
    [undefined],
  ]);
  // A run that the list of runs does not contain: the start is unknown, and so is the duration.
  expect(stepsOf(states, new Map(), new Map())[0]?.duration_ms).toBeUndefined();
});

it("finds the branches of a thread, each up to its newest checkpoint, and the places where they fork", () => {
  const child = (id: number, parent: number | null): StepState =>
    ({
      ...checkpoint(id, "run", id),
      parent_checkpoint: parent === null ? null : { checkpoint_id: `c${parent}` },
    }) as StepState;
  // 0 - 1 - 2 - 5      and 1 - 3 - 4 - 7, 4 - 6
  const states = [
    child(7, 4),
    child(6, 4),
    child(5, 2),
    child(4, 3),
    child(3, 1),
    child(2, 1),
    child(1, 0),
    child(0, null),
  ];
  const branch = (checkpoint_id?: string) => {
    const found = branchOf(states, checkpoint_id);
    return [found.states.map((each) => each.checkpoint?.checkpoint_id).join(" "), Object.fromEntries(found.forks)];
  };
  const newest = ["c7 c4 c3 c1 c0", { c7: { heads: ["c6", "c7"], at: 1 }, c3: { heads: ["c5", "c7"], at: 1 } }];
  for (const id of [undefined, "unknown", "c0", "c1", "c3", "c4", "c7"]) expect(branch(id)).toEqual(newest);
  for (const id of ["c2", "c5"]) expect(branch(id)).toEqual(["c5 c2 c1 c0", { c2: { heads: ["c5", "c7"], at: 0 } }]);
  expect(branch("c6")).toEqual([
    "c6 c4 c3 c1 c0",
    { c6: { heads: ["c6", "c7"], at: 0 }, c3: { heads: ["c5", "c7"], at: 1 } },
  ]);
  expect(branchOf([], undefined).states).toEqual([]);
});
