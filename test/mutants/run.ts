/**
 * Switches off one guard of the engine at a time, in a copy of the repository, and runs the suites that are there to see it.
 * A mutant that no suite notices survives, and makes this fail: then the suites, not the guard, need work.
 *
 * Usage: npm run test:mutants [-- part of a name]
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { MUTANTS, type Mutant } from "./mutants.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const COPIED = ["src", "test", "bin", "examples", "package.json", "tsconfig.json", "vitest.config.ts"];
/** A mutant may make a test wait for ever. */
const LIMIT_MS = 180_000;

const wanted = process.argv[2] ?? "";
const mutants = MUTANTS.filter(({ name }) => name.includes(wanted));
refuseBroken(mutants);
const survivors = mutants.filter((mutant) => {
  const began = performance.now();
  const killed = isNoticed(mutant);
  console.log(
    `${killed ? "noticed " : "SURVIVED"}  ${mutant.name} (${Math.round((performance.now() - began) / 1000)} s)`,
  );
  return !killed;
});
console.log(`${mutants.length - survivors.length} of ${mutants.length} mutants were noticed.`);
process.exit(survivors.length === 0 && mutants.length > 0 ? 0 : 1);

/** With all guards in place the suites must pass, or a failure would say nothing. */
function refuseBroken(chosen: readonly Mutant[]): void {
  const suites = [...new Set(chosen.flatMap((mutant) => mutant.suites))];
  // One at a time: the limit is that of a mutant's suites, not of all together.
  if (inCopy((folder) => suites.every((suite) => passes(folder, [suite])))) return;
  console.log(`The suites fail as they are: npm test -- ${suites.join(" ")}`);
  process.exit(1);
}

function isNoticed({ file, replace: [guard, nothing], suites }: Mutant): boolean {
  return inCopy((folder) => {
    const source = readFileSync(join(folder, file), "utf8");
    if (source.split(guard).length !== 2) throw new Error(`${file} must have this text just once: ${guard}`);
    writeFileSync(
      join(folder, file),
      source.replace(guard, () => nothing),
    );
    return !passes(folder, suites);
  });
}

function inCopy<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-mutant-"));
  try {
    for (const part of COPIED) cpSync(join(ROOT, part), join(folder, part), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"), "junction");
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function passes(cwd: string, suites: string[]): boolean {
  const vitest = join(cwd, "node_modules/vitest/vitest.mjs");
  const { status, error } = spawnSync(
    process.execPath,
    [vitest, "run", "--bail", "1", "--testTimeout", "20000", ...suites],
    {
      cwd,
      timeout: LIMIT_MS,
      stdio: "ignore",
    },
  );
  // Out of time is noticed, too.
  return status === 0 && !error;
}
