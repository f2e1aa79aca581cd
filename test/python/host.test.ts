import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { pythonEnvironment } from "../support/python.ts";

const TIMEOUT_MS = 15 * 60_000;
const ROOT = join(import.meta.dirname, "../..");

/** Runs a module of the environment, and returns its output if it fails. */
async function failureOf(args: string[], cwd: string): Promise<string | undefined> {
  const python = await pythonEnvironment();
  return promisify(execFile)(python, ["-B", "-m", ...args], { cwd, maxBuffer: 2 ** 26 }).then(
    () => undefined,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}\n${stderr}`.slice(-20_000),
  );
}

describe("the code inside a Python host", () => {
  it("passes its own tests, against the real process", { timeout: TIMEOUT_MS }, async () => {
    expect(await failureOf(["pytest", "-q", "-p", "no:cacheprovider"], import.meta.dirname)).toBeUndefined();
  });

  it("passes the checks of ruff and mypy", { timeout: TIMEOUT_MS }, async () => {
    const folder = join(ROOT, "python");
    expect(await failureOf(["ruff", "check", "--no-cache", ".", "../test/python"], folder)).toBeUndefined();
    expect(await failureOf(["ruff", "format", "--no-cache", "--check", "."], folder)).toBeUndefined();
    expect(await failureOf(["mypy", "--cache-dir", "/dev/null"], folder)).toBeUndefined();
  });
});
