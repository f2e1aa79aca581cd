import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A Python with the packages that were asked for, or what this machine lacks for it. */
export type PythonEnv = { python: string; missing?: undefined } | { python?: undefined; missing: string };

/**
 * Makes the environment once for each content of the requirements, a file of the folder python, and keeps it in the temporary
 * folder. With CI set nothing may be missing.
 */
export async function pythonEnv(requirements = "requirements.txt"): Promise<PythonEnv> {
  const env = await findOrMake(join(import.meta.dirname, "python", requirements));
  if (env.missing === undefined) return env;
  if (process.env.CI) throw new Error(`CI runs everything, but ${env.missing}`);
  console.warn(`\nThe Python client is not tested: ${env.missing}\n`);
  return env;
}

async function findOrMake(requirements: string): Promise<PythonEnv> {
  const hash = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 16);
  const folder = join(tmpdir(), `threadmill-python-${hash}`);
  const python = join(folder, "bin/python");
  if (existsSync(python)) return { python };
  const version = await run("python3", ["-c", "import sys; print(sys.version_info >= (3, 10))"]).catch(() => undefined);
  if (version?.stdout.trim() !== "True")
    return { missing: "python3 is missing or older than 3.10. Install it from https://www.python.org." };
  // Made beside its place and moved there when it is whole: another run of the tests may do the same right now.
  const draft = `${folder}.${process.pid}`;
  try {
    await run("python3", ["-m", "venv", draft]);
    await run(join(draft, "bin/python"), ["-m", "pip", "install", "--quiet", "--requirement", requirements]);
    if (!existsSync(python)) renameSync(draft, folder);
    return { python };
  } catch (error) {
    const reason = ((error as { stderr?: string }).stderr || String(error)).trim().split("\n").at(-1);
    return {
      missing: `its packages could not be installed (${reason}). It needs the venv module (Debian: apt install python3-venv) and PyPI or a mirror (PIP_INDEX_URL).`,
    };
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
