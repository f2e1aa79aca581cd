/**
 * The open-ended suites for as long as one likes: kills, random sequences, random requests, kills in roll-outs and deletions, and the
 * mutants, round after round, each with a seed of its own and the counts of docs/reliability.md. A run that is stopped goes on where it
 * was; the first failure ends it and prints the command that repeats it.
 *
 * Usage: npm run test:soak -- --hours 1 [--fresh]
 *        npm run test:soak -- faults [--seed 7]    (one group, once; times are gates: for a quiet machine)
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";

const ROOT = resolve(import.meta.dirname, "..");
const STATE = join(ROOT, "node_modules/.cache/threadmill-tests/soak.json");
const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");

/** The variables of test/support/counts.ts. */
const COUNTS = {
  CRASH_KILLS: "100",
  RECONNECTS: "100000",
  HOST_KILLS: "100",
  MODEL_SEQUENCES: "2000",
  FUZZ_REQUESTS: "10000",
  CONTROL_SEQUENCES: "150",
  CONTROL_STEP: "1",
  ROUTER_REQUESTS: "10000",
  FAULTS: "15",
};

const suite = (...files: string[]) => ({
  name: files.join(" "),
  args: [VITEST, "run", "--mode", "all", "--testTimeout", "0", ...files],
});
const FAULTS = [
  suite("test/faults"),
  // Each fault by itself, with the order of what happens under control.
  suite(
    ...["database-faults", "host-pool", "clock", "data-faults", "large-states"].map(
      (name) => `test/engine/${name}.test.ts`,
    ),
  ),
];
const STEPS = [
  ...FAULTS,
  suite("test/crash/ledger.test.ts"),
  suite("test/crash/readers.test.ts"),
  suite("test/crash/python-hosts.test.ts"),
  suite("test/model/model.test.ts"),
  suite("test/model/crash.test.ts"),
  suite("test/experiments/upload-faults.test.ts"),
  suite("test/fuzz"),
  suite("test/control/crashes.test.ts"),
  suite("test/control/rollout-kills.test.ts"),
  suite("test/control/router/switch.test.ts"),
  { name: "mutants", args: [join(ROOT, "test/mutants/run.ts")] },
];

type Step = ReturnType<typeof suite>;

interface State {
  /** Of this round; the next one has the next. */
  seed: number;
  /** The step that comes next. */
  step: number;
  rounds: number;
}

const { values, positionals } = parseArgs({
  options: { hours: { type: "string", default: "1" }, fresh: { type: "boolean" }, seed: { type: "string" } },
  allowPositionals: true,
});
if (positionals.length > 0) {
  if (positionals.join() !== "faults") {
    console.error(`"${positionals.join(" ")}" is no group; there is "faults".`);
    process.exit(2);
  }
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  for (const step of FAULTS) play(step, seed);
  process.exit(0);
}
const hours = Number(values.hours);
if (!(hours > 0)) {
  console.error(`--hours must be a number above 0, but is "${values.hours}".`);
  process.exit(2);
}
const end = Date.now() + hours * 3_600_000;
let state: State = (!values.fresh && readState()) || { seed: Date.now() % 1_000_000, step: 0, rounds: 0 };
while (Date.now() < end) {
  console.log(`\n== round ${state.rounds + 1}`);
  play(STEPS[state.step] as Step, state.seed);
  const isLast: boolean = state.step === STEPS.length - 1;
  state = isLast ? { seed: state.seed + 1, step: 0, rounds: state.rounds + 1 } : { ...state, step: state.step + 1 };
  mkdirSync(dirname(STATE), { recursive: true });
  writeFileSync(STATE, JSON.stringify(state));
}
console.log(
  `\n${hours} h are over: ${state.rounds} whole rounds; the next run begins with ${STEPS[state.step]?.name}.`,
);

/** Ends this program when the step fails. */
function play({ name, args }: Step, seed: number): void {
  console.log(`\n== seed ${seed}: ${name}`);
  const env = { ...process.env, ...COUNTS, SEED: String(seed) };
  const { status } = spawnSync(process.execPath, args, { cwd: ROOT, env, stdio: "inherit" });
  if (status === 0) return;
  const counts = Object.entries({ ...COUNTS, SEED: seed }).map(([key, value]) => `${key}=${value}`);
  console.error(`\n${name} failed. Repeat it with: ${counts.join(" ")} npx vitest run --mode all ${name}`);
  process.exit(1);
}

function readState(): State | undefined {
  try {
    return JSON.parse(readFileSync(STATE, "utf8")) as State;
  } catch {
    return undefined;
  }
}
