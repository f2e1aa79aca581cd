import { cpSync, existsSync, globSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { bundleProgram } from "../../build.ts";
import { madeOnce } from "./made-once.ts";

const ROOT = join(import.meta.dirname, "../..");

/** The program that runs the source of the repository. */
export const SOURCE_PROGRAM = join(ROOT, "bin/threadmill.js");

/** The program of the npm package; without Vitest, the source. */
export const PROGRAM = process.env.TEST_PROGRAM ?? SOURCE_PROGRAM;

const ONE_DAY_MS = 86_400_000;

/** Bundles the program before the tests, whose processes start it hundreds of times. */
export default async function setup(): Promise<void> {
  process.env.TEST_PROGRAM = await bundledProgram();
}

/** Returns the path of the program as the npm package contains it, bundled if the source has changed. */
export async function bundledProgram(): Promise<string> {
  const sources = ["build.ts", "package-lock.json", ...globSync("src/**/*.ts", { cwd: ROOT })];
  const folder = (await madeOnce({
    client: "The program of the npm package",
    folder_prefix: "program",
    made_of: [ROOT, ...sources.map((file) => readFileSync(join(ROOT, file), "utf8"))].join(),
    make: async (made) => {
      await bundleProgram(join(made, "dist"));
      for (const file of ["bin", "package.json"]) cpSync(join(ROOT, file), join(made, file), { recursive: true });
      symlinkSync(join(ROOT, "python"), join(made, "python"));
      symlinkSync(join(ROOT, "dist/web"), join(made, "dist/web"));
    },
  })) as string;
  // Drafts of other runs have longer names. Mutants are tested in copies of the repository that are deleted afterwards.
  for (const name of globSync("program-????????????????", { cwd: dirname(folder) })) {
    const other = join(dirname(folder), name);
    const isOld = statSync(other).mtimeMs < Date.now() - ONE_DAY_MS || !existsSync(join(other, "python"));
    if (other !== folder && isOld) rmSync(other, { recursive: true, force: true });
  }
  return join(folder, "bin/threadmill.js");
}
