import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { findWorkspace } from "../../src/access/storage/workspaces.ts";
import { findAssistant, insertAssistant, listVersions } from "../../src/agent-server/storage/assistants.ts";
import { agentServer, eventCopies, rollback } from "../../src/agent-server/storage/migrations/001-009.ts";
import { pushNotifications } from "../../src/agent-server/storage/migrations/012-027.ts";
import { claimWebhookDeliveries } from "../../src/agent-server/storage/webhooks.ts";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import { findDataset } from "../../src/experiments/storage/datasets.ts";
import { examplesAt } from "../../src/experiments/storage/examples.ts";
import { experiments } from "../../src/experiments/storage/migrations.ts";
import { DEFAULT_TENANT } from "../../src/platform/contract/caller.ts";
import type { Tx } from "../../src/platform/database/database.ts";
import { type Migration, migrate } from "../../src/platform/database/migrate.ts";
import { createDatabase, databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";

/** A database as the program left it that knew no more than these migrations. */
async function applyAll(tx: Tx, migrations: readonly Migration[]): Promise<void> {
  const execute = (statement: string) => tx.run(sql.raw(statement).compile(tx.k));
  await execute("create table schema_migrations (name text primary key, applied_at bigint not null)");
  for (const { name, statements } of migrations) {
    for (const statement of statements(tx.dialect)) await execute(statement);
    await execute(`insert into schema_migrations values ('${name}', 0)`);
  }
}

const ASSISTANT = {
  assistant_id: "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
  tenant_id: DEFAULT_TENANT,
  graph_id: "g",
  name: "Old",
  description: null,
  config: '{"a":1}',
  context: "{}",
  metadata: '{"b":2}',
};

describe.each(databases)("a database of an older version on %s", (name) => {
  it("keeps its assistants with their versions, which other workspaces may then have too", async () => {
    const at = await createDatabase(name, { empty: true });
    const database = openOn(at);
    await database.write(async (tx) => {
      await applyAll(tx, [agentServer, rollback, eventCopies]);
      for (const [table, more] of [
        ["assistants", { version: 2, created_at: 1, updated_at: 3 }],
        ["assistant_versions", { version: 1, created_at: 1 }],
        ["assistant_versions", { version: 2, created_at: 2 }],
      ] as const)
        await tx.run(tx.k.insertInto(table).values({ ...ASSISTANT, ...more } as never));
    });
    expect(await migrate(database, MIGRATIONS.agents)).toEqual([
      "004-vault",
      "005-assistants-of-workspaces",
      "006-control-plane",
      "007-claimant",
      "008-runs-of-workspaces",
      "009-task-paths",
      "010-deployment-roles",
      "011-member-roles",
      "012-queues-of-workspaces",
      "013-column-names",
      "015-active-rollout",
      "016-trace-deletions",
      "017-crons",
      "018-store",
      "019-webhooks",
      "020-cron-users",
      "021-thread-ttl",
      "022-push-notifications",
      "023-instance-auth",
      "024-checkpoint-language",
      "025-project-encryption",
      "026-runs-of-users",
      "027-event-bases",
    ]);
    const { read } = database;
    expect(await findAssistant(read, DEFAULT_TENANT, ASSISTANT.assistant_id)).toEqual({
      ...ASSISTANT,
      version: 2,
      created_at: 1,
      updated_at: 3,
    });
    const versions = await listVersions(read, ASSISTANT, { limit: 10, offset: 0 });
    expect(versions).toEqual([2, 1].map((version) => ({ ...ASSISTANT, version, created_at: version })));
    expect((await findWorkspace(read, DEFAULT_TENANT))?.name).toBe("default");
    const elsewhere = { ...ASSISTANT, tenant_id: "another" };
    expect(await database.write((tx) => insertAssistant(tx, elsewhere))).toMatchObject({ ...elsewhere, version: 1 });
    expect(await database.write((tx) => insertAssistant(tx, elsewhere))).toBeUndefined();
    await database.close();
    await at.drop();
  });

  it("keeps the webhooks that it has not delivered", async () => {
    const at = await createDatabase(name, { empty: true });
    const database = openOn(at);
    const last = MIGRATIONS.agents.indexOf(pushNotifications);
    await database.write(async (tx) => {
      await applyAll(tx, MIGRATIONS.agents.slice(0, last));
      const columns =
        "run_id, tenant_id, url, origin, payload, status, attempts, next_at, queued_at, created_at, updated_at";
      await tx.run(
        sql
          .raw(`insert into webhook_deliveries (${columns})
          values ('r', 't', 'https://a.example/b', 'https://a.example', '{"a":1}', 'pending', 2, 1, 1, 1, 1)`)
          .compile(tx.k),
      );
    });
    await migrate(database, MIGRATIONS.agents);
    const claim = { lease_ms: 1000, limit: 10, except_origins: [] };
    const claimed = await database.write((tx) => claimWebhookDeliveries(tx, claim));
    expect(claimed).toMatchObject([{ delivery_id: "r", run_id: "r", payload: '{"a":1}', push: null, attempts: 3 }]);
    await database.close();
    await at.drop();
  });

  it("keeps its examples with their indexes", async () => {
    const at = await createDatabase(name, { empty: true });
    const database = openOn(at);
    await database.write(async (tx) => {
      await applyAll(tx, [experiments]);
      for (const statement of [
        `insert into datasets (tenant_id, dataset_id, name, data_type, externally_managed, shares_experiments, example_count,
          next_ord, next_test_run, created_at, modified_at) values ('t', 'd', 'n', 'kv', 1, 0, 1, 8, 1, 0, 0)`,
        "insert into examples values (1, 7, 't', 'e', 'e', 1, 'digest', null, 0, 0, 0)",
        "insert into example_versions values (1, 7, 1, '{}', null, null, '[]', 0, 0)",
      ])
        await tx.run(sql.raw(statement).compile(tx.k));
    });
    expect(await migrate(database, MIGRATIONS.experiments)).toEqual([
      "experiments-002",
      "experiments-003",
      "experiments-004",
      "experiments-005",
      "experiments-006",
      "experiments-009",
    ]);
    expect(await findDataset(database.read, "t", "d")).toMatchObject({ next_example_index: 8 });
    expect(await examplesAt(database.read, 1, [7])).toMatchObject([{ example_index: 7, example_id: "e" }]);
    await database.close();
    await at.drop();
  });
});
