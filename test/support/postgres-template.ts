import { randomBytes } from "node:crypto";
import type { TestProject } from "vitest/node";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { openPostgres } from "../../src/platform/database/postgres/postgres.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { execute } from "./postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A Postgres in which test databases may be made; empty when there is none. */
    postgres: string;
    /** A database in it that has the schema of this version, to be copied. */
    template: string;
    /** Path of a Chromium for the suites of the web app; empty when there is none. */
    chromium: string;
    /** Whether there are bash and curl, which the commands of the documentation need. */
    curl: boolean;
    /** What suites that are written for any database run on. */
    databases: readonly ("sqlite" | "postgres")[];
    /** The language of the graphs of test/graphs/scenarios. */
    language: "js" | "python";
    /** Whether their project has encryption handlers. */
    encrypts: boolean;
  }
}

/** Makes the template of the databases on Postgres: copying it takes a fifth of the time of its migrations. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const admin = project.getProvidedContext().postgres;
  if (!admin) return undefined;
  const template = `threadmill_template_${randomBytes(6).toString("hex")}`;
  await execute(admin, `create database ${template}`);
  const url = new URL(admin);
  url.pathname = `/${template}`;
  const database = openPostgres({ url: url.href, log: createLog("silent") });
  for (const migrations of Object.values(MIGRATIONS)) await migrate(database, migrations);
  await database.close();
  project.provide("template", template);
  return async () => {
    await execute(admin, `drop database if exists ${template} with (force)`);
  };
}
