import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COUNTS, SEED } from "../support/counts.ts";
import { databases } from "../support/databases.ts";
import type { Fault } from "./life.ts";
import { COMMANDS, type Command, REFS } from "./model.ts";
import { forbiddenTransitions, recordedTransitions, recordTransitions } from "./moves.ts";
import { Sequence } from "./sequence.ts";
import { World } from "./world.ts";

/** Every so many calls of a sequence get a fault; which of them is a matter of the seed. */
const STEP = { sqlite: COUNTS.control_step, postgres: COUNTS.control_step * 8 };
const SEQUENCES = COUNTS.control_sequences;

/** One through everything that a deployment can go through. */
const ALL: Command[] = [
  { name: "create", ref: "main", pick: 0 },
  { name: "create", ref: "build-held", pick: 0 },
  { name: "create", ref: "build-fails", pick: 0 },
  { name: "create", ref: "run-held", pick: 0 },
  { name: "release", ref: "", pick: 0 },
  { name: "interrupt", ref: "", pick: 0 },
  { name: "kill", ref: "", pick: 0 },
  { name: "redeploy", ref: "", pick: 0 },
  { name: "create", ref: "run-dies", pick: 0 },
  { name: "redeploy", ref: "", pick: 0 },
  { name: "create", ref: "build-held", pick: 0 },
  { name: "delete", ref: "", pick: 0 },
];

const command: fc.Arbitrary<Command> = fc.record({
  name: fc.oneof(
    ...COMMANDS.map((name) => ({
      weight: { create: 8, release: 6, interrupt: 3, redeploy: 3, kill: 2, delete: 1 }[name],
      arbitrary: fc.constant(name),
    })),
  ),
  ref: fc.constantFrom("main", "main", ...REFS),
  pick: fc.nat(99),
});

const fault: fc.Arbitrary<Fault> = fc.record({
  at: fc.integer({ min: 1, max: 80 }),
  when: fc.constantFrom("before", "after"),
  what: fc.constantFrom("crash", "crash", "error"),
});

const first: Command = { name: "create", ref: "main", pick: 0 };
const sequence = fc.record({
  commands: fc.array(command, { minLength: 3, maxLength: 10 }).map((commands) => [first, ...commands]),
  fault,
});

console.info(`The faults of deployments: SEED=${SEED}`);

describe.each(databases)("a deployment on %s", (name) => {
  let world: World;
  beforeAll(async () => {
    world = await World.open(name);
    await recordTransitions(world);
  });
  afterAll(() => world.close());

  it.each(["crash", "error"] as const)(
    "ends the same with a %s between any two steps",
    async (what) => {
      await world.clear();
      const whole = new Sequence(world);
      await whole.run(ALL);
      expect(whole.calls).toBeGreaterThan(60);
      let [sure, crashes] = [0, 0];
      for (const when of ["before", "after"] as const) {
        for (let at = 1 + (SEED % STEP[name]); at <= whole.calls; at += STEP[name]) {
          await world.clear();
          await new Sequence(world).run(ALL, { at, when, what }).catch((error: Error) => {
            throw new Error(`${what} ${when} call ${at} (SEED=${SEED}): ${error.message}`);
          });
          // The last calls come or do not come, by the moment in which lines of the log are gathered.
          if (at <= 0.9 * whole.calls) sure++;
          crashes += world.crashes;
        }
      }
      if (what === "crash") expect(crashes).toBeGreaterThanOrEqual(sure);
      expect(forbiddenTransitions(await recordedTransitions(world))).toEqual([]);
    },
    600_000,
  );

  it("ends in the state that the model predicts, for any requests and faults", async () => {
    const runs = name === "sqlite" ? SEQUENCES : Math.ceil(SEQUENCES / 10);
    await fc.assert(
      fc.asyncProperty(sequence, async ({ commands, fault }) => {
        await world.clear();
        await new Sequence(world).run(commands, fault);
      }),
      { seed: SEED, numRuns: runs },
    );
    expect(forbiddenTransitions(await recordedTransitions(world))).toEqual([]);
  }, 600_000);
});
