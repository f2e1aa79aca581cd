import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { execute } from "./postgres.ts";

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

/**
 * A fresh database with the schema of this version: on Postgres a copy of the template that postgres-template.ts has made, on SQLite an empty
 * folder, which a service fills in 20 ms.
 *
 * @param empty without a schema: for tests of migrations
 * @param admin another Postgres than that of the suite; the database is empty
 */
export async function createDatabase(
  name: DatabaseName,
  { admin = inject("postgres"), empty = admin !== inject("postgres") }: { admin?: string; empty?: boolean } = {},
): Promise<TestDatabase> {
  const data_dir = mkdtempSync(join(tmpdir(), "threadmill-test-"));
  const dropFolder = () => rmSync(data_dir, { recursive: true, force: true });
  if (name === "sqlite") return { data_dir, url: undefined, drop: async () => dropFolder() };
  const database = `threadmill_test_${randomBytes(6).toString("hex")}`;
  await execute(admin, `create database ${database}${empty ? "" : ` template ${inject("template")}`}`);
  // Tests that crash a server have their own.
  await execute(admin, `alter database ${database} set synchronous_commit = off`);
  const url = new URL(admin);
  url.pathname = `/${database}`;
  return {
    data_dir,
    url: url.href,
    async drop() {
      dropFolder();
      const roles = await execute(admin, rolesOf(database));
      await execute(admin, `drop database if exists ${database} with (force)`);
      for (const { rolname } of roles) await execute(admin, `drop role ${rolname}`);
    },
  };
}

/** Of deployments (src/control-plane/storage/deployment-schema.ts). */
const rolesOf = (database: string): string =>
  `select rolname from pg_roles, pg_database where datname = '${database}' and rolname like 'deployment\\_%\\_' || pg_database.oid`;
