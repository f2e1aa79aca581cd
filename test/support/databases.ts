import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { inject } from "vitest";

/** A database for one test file, and how to get rid of it. */
export interface TestDatabase {
  /** Folder for the embedded database; used in both cases. */
  data_dir: string;
  /** Set for Postgres. */
  url: string | undefined;
  drop(): Promise<void>;
}

export type DatabaseName = "sqlite" | "postgres";

/** The databases that suites of this project run on (test/suites.ts). */
export const databases: readonly DatabaseName[] = inject("databases");

export async function createDatabase(name: DatabaseName): Promise<TestDatabase> {
  const data_dir = mkdtempSync(join(tmpdir(), "threadmill-test-"));
  const dropFolder = () => rmSync(data_dir, { recursive: true, force: true });
  if (name === "sqlite") return { data_dir, url: undefined, drop: async () => dropFolder() };
  const admin = inject("postgres") as string;
  const database = `threadmill_test_${randomBytes(6).toString("hex")}`;
  await execute(admin, `create database ${database}`);
  const url = new URL(admin);
  url.pathname = `/${database}`;
  return {
    data_dir,
    url: url.href,
    async drop() {
      dropFolder();
      await execute(admin, `drop database if exists ${database} with (force)`);
    },
  };
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(statement);
  await client.end();
}
