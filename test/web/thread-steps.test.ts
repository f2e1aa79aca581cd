import { expect, it } from "vitest";
import { type StepState, stepsOf } from "../../web/src/pages/threads/side/steps.ts";

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
  expect(stepsOf(states, starts).map(({ nodes, duration_ms }) => [...nodes, duration_ms])).toEqual([
    ["approve", 50],
    ["agent", 200],
    [undefined],
  ]);
  // A run that the list of runs does not contain: the start is unknown, and so is the duration.
  expect(stepsOf(states, new Map())[0]?.duration_ms).toBeUndefined();
});
