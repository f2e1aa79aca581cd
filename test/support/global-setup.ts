import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** A Postgres in which test databases may be made; empty when there is none. */
    postgres: string;
    /** Path of a Chromium for the suites of the web app; empty when there is none. */
    chromium: string;
  }
}

const DEFAULT_URL = "postgres://postgres@127.0.0.1:5432/postgres";

/** Finds out what this machine has. With CI set nothing may be missing. */
export default async function setup(project: TestProject): Promise<void> {
  const url = process.env.TEST_DATABASE_URL ?? DEFAULT_URL;
  const reason = await unreachable(url);
  if (reason && process.env.CI)
    throw new Error(`CI runs everything, but Postgres does not answer at ${url} (${reason}).`);
  if (reason)
    console.warn(
      `\nNo Postgres at ${url} (${reason}): skipping it. Start one, or set TEST_DATABASE_URL, to run every suite on both databases.\n`,
    );
  project.provide("postgres", reason ? "" : url);
  project.provide("chromium", findChromium());
}

function findChromium(): string {
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name)))
    .find((file) => existsSync(file));
  if (!found && process.env.CI) throw new Error("CI runs everything, but there is no chromium in the PATH.");
  if (!found)
    console.warn("\nNo Chromium: skipping test/web. Install it (Debian: apt install chromium) to test the web app.\n");
  return found ?? "";
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
