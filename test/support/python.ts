import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { isPython } from "./found.ts";
import { madeOnce } from "./made-once.ts";

const run = promisify(execFile);

/**
 * Returns the path of an interpreter that can execute graphs.
 *
 * @throws Error if this machine cannot have one
 */
export async function pythonEnvironment(): Promise<string> {
  const python = await virtualEnvironment({
    client: "Python graphs",
    folder_prefix: "python-graphs",
    requirements: join(import.meta.dirname, "../python/requirements.txt"),
    oldest: [3, 11],
  });
  if (python === undefined) throw new Error("The virtual environment for Python graphs could not be created.");
  return python;
}

interface VirtualEnvironment {
  /** As sentences begin with it: "The Python clients". */
  client: string;
  folder_prefix: string;
  /** Path of a requirements.txt. */
  requirements: string;
  oldest: readonly [number, number];
}

/** Makes a virtual environment once. @returns its interpreter; undefined when this machine cannot have one */
export async function virtualEnvironment(made: VirtualEnvironment): Promise<string | undefined> {
  const { client, folder_prefix, requirements, oldest } = made;
  const folder = await madeOnce({
    client,
    folder_prefix,
    made_of: readFileSync(requirements, "utf8"),
    make: (draft) => install(draft, requirements, oldest),
  });
  return folder && join(folder, "bin/python");
}

async function install(folder: string, requirements: string, oldest: readonly [number, number]): Promise<void> {
  if (!(await isPython(oldest)))
    throw new Error(`python3 is missing or older than ${oldest.join(".")}. Install it from https://www.python.org.`);
  try {
    await run("python3", ["-m", "venv", folder]);
    await run(join(folder, "bin/python"), ["-m", "pip", "install", "--quiet", "--requirement", requirements]);
  } catch (error) {
    const reason = ((error as { stderr?: string }).stderr || String(error)).trim().split("\n").at(-1);
    throw new Error(
      `its packages could not be installed (${reason}). It needs the venv module (Debian: apt install python3-venv) and PyPI or a mirror (PIP_INDEX_URL).`,
    );
  }
}
