import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { madeOnce } from "../support/made-once.ts";

const run = promisify(execFile);

/** A Python with the official clients; undefined when this machine cannot have one. */
export async function pythonEnv(): Promise<{ python?: string }> {
  const file = join(import.meta.dirname, "python/requirements.txt");
  const folder = await madeOnce({
    client: "The Python clients",
    folder_prefix: "python",
    made_of: readFileSync(file, "utf8"),
    make: (draft) => makeEnv(draft, file),
  });
  return folder === undefined ? {} : { python: join(folder, "bin/python") };
}

async function makeEnv(folder: string, requirements: string): Promise<void> {
  const version = await run("python3", ["-c", "import sys; print(sys.version_info >= (3, 10))"]).catch(() => undefined);
  if (version?.stdout.trim() !== "True")
    throw new Error("python3 is missing or older than 3.10. Install it from https://www.python.org.");
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

/** What a script says of one of its scenarios, a line of JSON each. */
export interface ScenarioLine {
  scenario: string;
  ok: boolean;
  reason?: string;
}

/**
 * Runs a script of the folder python to its end, at most two minutes.
 *
 * @param env added to the environment of this process
 * @returns what it wrote on standard output and on standard error
 */
export async function runScript(
  python: string,
  script: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<{ printed: string; complaints: string }> {
  const child = spawn(python, ["-B", join(import.meta.dirname, "python", script), ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
    timeout: 120_000,
  });
  const [printed, complaints] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { printed, complaints };
}

/** {@link runScript} for a script that prints its scenarios. @returns the scenarios in their order */
export async function runScenarios(
  ...args: Parameters<typeof runScript>
): Promise<{ lines: ScenarioLine[]; complaints: string }> {
  const { printed, complaints } = await runScript(...args);
  return {
    lines: printed
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as ScenarioLine),
    complaints,
  };
}
