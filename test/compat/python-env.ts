import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { virtualEnvironment } from "../support/python.ts";

/** A Python with the official clients; undefined when this machine cannot have one. */
export async function pythonEnv(): Promise<{ python?: string }> {
  const python = await virtualEnvironment({
    client: "The Python clients",
    folder_prefix: "python",
    requirements: join(import.meta.dirname, "python/requirements.txt"),
    oldest: [3, 10],
  });
  return python === undefined ? {} : { python };
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
