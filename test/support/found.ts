import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";

const DEFAULT_URL = "postgres://postgres@127.0.0.1:5432/postgres";

/**
 * The Postgres in which test databases may be made: that of TEST_DATABASE_URL, or one of this machine; empty when none answers.
 *
 * @throws Error with CI set, where nothing may be missing
 */
export async function findPostgres(): Promise<string> {
  const url = process.env.TEST_DATABASE_URL ?? DEFAULT_URL;
  const reason = await unreachable(url);
  if (reason === undefined) return url;
  if (process.env.CI) throw new Error(`CI runs everything, but Postgres does not answer at ${url} (${reason}).`);
  return "";
}

/** The headless shell is Chromium without its user interface: the same pages take half the CPU time. */
const BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/** Path of a Chromium for the suites of the web app; empty when there is none. */
export function findChromium(): string {
  const found = findCommand(BROWSERS);
  if (!found && process.env.CI) throw new Error("CI runs everything, but there is no Chromium in the PATH.");
  return found ?? "";
}

/** Returns whether the commands of the documentation can be executed. */
export function findCurl(): boolean {
  const found = findCommand(["bash"]) !== undefined && findCommand(["curl"]) !== undefined;
  if (!found && process.env.CI) throw new Error("CI runs everything, but there is no bash or curl in the PATH.");
  return found;
}

const findCommand = (names: readonly string[]): string | undefined =>
  (process.env.PATH ?? "")
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find((file) => existsSync(file));

/**
 * Returns whether `python3` can execute graphs.
 *
 * @throws Error with CI set, where nothing may be missing
 */
export async function findPython(): Promise<boolean> {
  const found = await isPython([3, 11]);
  if (!found && process.env.CI)
    throw new Error("CI runs everything, but there is no python3 of 3.11 or later in the PATH.");
  return found;
}

/** Returns whether `python3` is of this version or a later one. */
export async function isPython([major, minor]: readonly [number, number]): Promise<boolean> {
  const check = `import sys; print(sys.version_info >= (${major}, ${minor}))`;
  const answer = await promisify(execFile)("python3", ["-c", check]).catch(() => undefined);
  return answer?.stdout.trim() === "True";
}

async function unreachable(url: string): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  try {
    await client.connect();
    await client.query("select 1");
    return undefined;
  } catch (error) {
    return (error as Error).message || (error as { code?: string }).code || "no answer";
  } finally {
    await client.end().catch(() => undefined);
  }
}
