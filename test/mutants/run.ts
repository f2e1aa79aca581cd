/**
 * Switches off one guard at a time, in a copy of the repository, and runs the suites that are there to see it: first those of
 * `npm test`, and where these see nothing those that only `npm run test:all` has. A mutant that no suite notices survives, and makes
 * this fail: then the suites, not the guard, need work.
 *
 * Usage: npm run test:mutants [-- [--green] part of a name ...]; --green: the suites have just passed, so only one is tried first
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { MUTANTS, type Mutant } from "./mutants.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const COPIED = [
  "build.ts",
  "deploy",
  "src",
  "test",
  "bin",
  "examples",
  "python",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "vitest.config.ts",
];
/** A mutant may make a test wait for ever. */
const LIMIT_MS = 180_000;

/** What notices a mutant: the modes of vitest.config.ts by the commands that run them. */
const COMMANDS = { "npm test": "test", "npm run test:all": "rest" } as const;
type Command = keyof typeof COMMANDS;
interface Notice {
  by: Command;
  /** No test failed within {@link LIMIT_MS}: the mutant makes one wait, or the machine is too slow. */
  isTimeout: boolean;
}

const { values, positionals: wanted } = parseArgs({ options: { green: { type: "boolean" } }, allowPositionals: true });
const mutants = MUTANTS.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
const suites = [...new Set(mutants.flatMap((mutant) => mutant.suites))];
// With all guards in place the suites must pass, or a failure would say nothing. One suite shows whether a copy runs at all.
const broken = await each(
  values.green ? ["test/lib/cron-schedule.test.ts"] : suites,
  async (suite) => (await inCopy((folder) => failing(folder, [suite]))) && suite,
);
const failed = broken.filter((suite) => suite !== undefined);
if (failed.length > 0) {
  console.log(`The suites fail as they are: ${failed.join(" ")}`);
  process.exit(1);
}
const noticed = await each(mutants, async (mutant) => {
  const began = performance.now();
  const notice = await noticeOf(mutant);
  const seconds = Math.round((performance.now() - began) / 1000);
  const by = `${notice?.by ?? "by none"}${notice?.isTimeout ? ", timed out" : ""}`;
  console.log(`${notice ? "noticed " : "SURVIVED"}  ${mutant.name} (${by}, ${seconds} s)`);
  return notice;
});
const late = mutants.filter((_, i) => noticed[i]?.by === "npm run test:all");
if (late.length > 0) console.log(`Noticed by "npm run test:all" alone: ${late.map(({ name }) => name).join("; ")}.`);
const slow = mutants.filter((_, i) => noticed[i]?.isTimeout);
if (slow.length > 0)
  console.log(`Noticed by the time limit of ${LIMIT_MS / 1000} s: ${slow.map(({ name }) => name).join("; ")}.`);
const count = noticed.filter((notice) => notice !== undefined).length;
console.log(`${count} of ${mutants.length} mutants were noticed, ${count - late.length} of them by "npm test".`);
process.exit(count === mutants.length && count > 0 ? 0 : 1);

/** Works on as many items at a time as there are cores; the results are in the order of the items. */
async function each<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = items.entries();
  const worker = async () => {
    for (const [i, item] of left) results[i] = await work(item);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return results;
}

function noticeOf({ file, replace: [guard, nothing], suites }: Mutant): Promise<Notice | undefined> {
  return inCopy((folder) => {
    const source = readFileSync(join(folder, file), "utf8");
    if (source.split(guard).length !== 2) throw new Error(`${file} must have this text just once: ${guard}`);
    writeFileSync(
      join(folder, file),
      source.replace(guard, () => nothing),
    );
    return failing(folder, suites);
  });
}

async function inCopy<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-mutant-"));
  // Deployments run the program in it as users of their own.
  chmodSync(folder, 0o755);
  try {
    for (const part of COPIED) cpSync(join(ROOT, part), join(folder, part), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"), "junction");
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The first command in which one of the suites fails; undefined when they all pass. */
async function failing(cwd: string, suites: readonly string[]): Promise<Notice | undefined> {
  for (const by of Object.keys(COMMANDS) as Command[]) {
    const result = await run(cwd, suites, COMMANDS[by]);
    if (result !== "passed") return { by, isTimeout: result === "timeout" };
  }
  return undefined;
}

async function run(cwd: string, suites: readonly string[], mode: string): Promise<"passed" | "failed" | "timeout"> {
  const vitest = join(cwd, "node_modules/vitest/vitest.mjs");
  const flags = ["--mode", mode, "--passWithNoTests", "--bail", "1", "--testTimeout", "20000", "--maxWorkers", "1"];
  // With a count of its own, a random search uses all databases.
  const env = { ...process.env, CRASH_KILLS: process.env.CRASH_KILLS ?? "3" };
  const args = [vitest, "run", ...flags, ...suites];
  const child = spawn(process.execPath, args, { cwd, env, stdio: "ignore", detached: true });
  // With everything that it has started: a suite's servers would go on without it.
  const timer = setTimeout(() => process.kill(-(child.pid as number), "SIGKILL"), LIMIT_MS);
  const [status, signal] = await once(child, "exit");
  clearTimeout(timer);
  if (signal === "SIGKILL") return "timeout";
  return status === 0 ? "passed" : "failed";
}
