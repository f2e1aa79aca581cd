import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
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

/**
 * Returns the settings of a service with Python graphs: one process for runs and none in reserve, because each takes a second of CPU time to
 * import LangGraph. Tests whose subject are the processes set their number.
 */
export const pythonSettings = async (): Promise<Record<string, string>> => ({
  THREADMILL_PYTHON: await pythonEnvironment(),
  THREADMILL_PYTHON_HOSTS: "1",
  THREADMILL_PYTHON_SPARE: "0",
});

interface VirtualEnvironment {
  /** As sentences begin with it: "The Python clients". */
  client: string;
  folder_prefix: string;
  /** Path of a requirements.txt. */
  requirements: string;
  oldest: readonly [number, number];
  /** Default: `python3`. */
  interpreter?: string;
  /** For requirements without exact versions: the month, in which they are not installed again. */
  period?: string;
}

/** Makes a virtual environment once. @returns its interpreter; undefined when this machine cannot have one */
export async function virtualEnvironment(made: VirtualEnvironment): Promise<string | undefined> {
  const { client, folder_prefix, requirements, interpreter = "", period = "" } = made;
  const folder = await madeOnce({
    client,
    folder_prefix,
    made_of: readFileSync(requirements, "utf8") + interpreter + period,
    make: (draft) => install(draft, made),
  });
  return folder && join(folder, "bin/python");
}

async function install(folder: string, { requirements, oldest, interpreter }: VirtualEnvironment): Promise<void> {
  if (!interpreter && !(await isPython(oldest)))
    throw new Error(`python3 is missing or older than ${oldest.join(".")}. Install it from https://www.python.org.`);
  try {
    await run(interpreter ?? "python3", ["-m", "venv", folder]);
    await run(join(folder, "bin/python"), ["-m", "pip", "install", "--quiet", "--requirement", requirements]);
  } catch (error) {
    const reason = ((error as { stderr?: string }).stderr || String(error)).trim().split("\n").at(-1);
    throw new Error(
      `its packages could not be installed (${reason}). It needs the venv module (Debian: apt install python3-venv) and PyPI or a mirror (PIP_INDEX_URL).`,
    );
  }
}

/** Versions besides those of {@link pythonEnvironment} that the limits of docs/python.md permit. */
export const OTHER_VERSIONS = [
  { python: "3.12", langgraph: "the oldest LangGraph", requirements: "oldest.txt" },
  { python: "3.13", langgraph: "the newest LangGraph", requirements: "newest.txt" },
] as const;

/** Returns the path of an interpreter with other versions; undefined without such a Python, which is said. */
export async function environmentOf(other: (typeof OTHER_VERSIONS)[number]): Promise<string | undefined> {
  const client = `Python ${other.python} with ${other.langgraph}`;
  const interpreter = await findInterpreter(other.python);
  if (!interpreter) {
    console.warn(`\n${client} is not tested: there is no python${other.python} in the PATH, and none of pyenv.\n`);
    return undefined;
  }
  return virtualEnvironment({
    client,
    folder_prefix: `python-${other.python}`,
    requirements: join(import.meta.dirname, "../python", other.requirements),
    oldest: [3, 11],
    interpreter,
    ...(other.requirements === "newest.txt" && { period: new Date().toISOString().slice(0, 7) }),
  });
}

/** Returns the path of a Python of this version. The shims of pyenv that are in the PATH fail for versions that are not selected. */
export async function findInterpreter(version: string): Promise<string | undefined> {
  const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), ".pyenv"), "versions");
  const installed = globSync(`${version}.*/bin/python`, { cwd: pyenv }).map((path) => join(pyenv, path));
  const candidates = [`python${version}`, ...installed];
  for (const path of candidates) {
    const found = await run(path, ["-c", "import ensurepip, sys; print(sys.executable)"]).catch(() => undefined);
    if (found) return found.stdout.trim();
  }
  return undefined;
}
