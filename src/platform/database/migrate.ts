import { sql } from "kysely";
import { vault } from "../../access/storage/migrations/004-vault.ts";
import { memberRoles } from "../../access/storage/migrations/011-member-roles.ts";
import { agentServer } from "../../agent-server/storage/migrations/001-agent-server.ts";
import { rollback } from "../../agent-server/storage/migrations/002-rollback.ts";
import { eventCopies } from "../../agent-server/storage/migrations/003-event-copies.ts";
import { assistantsOfWorkspaces } from "../../agent-server/storage/migrations/005-assistants-of-workspaces.ts";
import { claimant } from "../../agent-server/storage/migrations/007-claimant.ts";
import { runsOfWorkspaces } from "../../agent-server/storage/migrations/008-runs-of-workspaces.ts";
import { taskPaths } from "../../agent-server/storage/migrations/009-task-paths.ts";
import { queuesOfWorkspaces } from "../../agent-server/storage/migrations/012-queues-of-workspaces.ts";
import { controlPlane } from "../../control-plane/storage/migrations/006-control-plane.ts";
import { deploymentRoles } from "../../control-plane/storage/migrations/010-deployment-roles.ts";
import { experiments } from "../../experiments/storage/migrations/experiments-001.ts";
import { ConfigError } from "../errors.ts";
import type { Database, Dialect, Tx } from "./database.ts";

export interface Migration {
  name: string;
  statements(dialect: Dialect): string[];
}

/**
 * The parts of the schema, each with its migrations in the order in which they are applied. On SQLite a part is a file,
 * on Postgres all parts are in one database. A migration that was published is never changed.
 */
const PARTS = {
  agents: [
    agentServer,
    rollback,
    eventCopies,
    vault,
    assistantsOfWorkspaces,
    controlPlane,
    claimant,
    runsOfWorkspaces,
    taskPaths,
    deploymentRoles,
    memberRoles,
    queuesOfWorkspaces,
  ],
  experiments: [experiments],
} as const satisfies Record<string, readonly Migration[]>;

/**
 * Brings a part of the database to this program's schema and returns the names of the migrations it applied. Safe when
 * several processes start at once: on Postgres one lock lets one of them work, on SQLite the transaction does.
 *
 * @throws ConfigError when a newer program has been here: its data may mean things that this one does not know
 */
export async function migrate(database: Database, part: keyof typeof PARTS): Promise<string[]> {
  return database.migrate(async (tx) => {
    await lock(tx);
    await execute(
      tx,
      "create table if not exists schema_migrations (name text primary key, applied_at bigint not null)",
    );
    const rows = await tx.all(
      sql<{ name: string }>`select name from schema_migrations`.$castTo<{ name: string }>().compile(tx.k),
    );
    const applied = new Set(rows.map((row) => row.name));
    const known = new Set<string>(Object.values(PARTS).flatMap((migrations) => migrations.map(({ name }) => name)));
    const unknown = [...applied].filter((name) => !known.has(name));
    if (unknown.length > 0) {
      throw new ConfigError(
        `The database (${database.description}) was made by a newer Threadmill (it has ${unknown.join(", ")}): start that version or newer on it.`,
      );
    }
    const pending = PARTS[part].filter((migration) => !applied.has(migration.name));
    for (const migration of pending) {
      for (const statement of migration.statements(tx.dialect)) await execute(tx, statement);
      await tx.run(
        sql`insert into schema_migrations (name, applied_at) values (${migration.name}, ${Date.now()})`.compile(tx.k),
      );
    }
    return pending.map((migration) => migration.name);
  });
}

const execute = (tx: Tx, statement: string) => tx.run(sql.raw(statement).compile(tx.k));

async function lock(tx: Tx): Promise<void> {
  if (tx.dialect.name === "postgres") await tx.run(sql`select pg_advisory_xact_lock(20240, 0)`.compile(tx.k));
}
