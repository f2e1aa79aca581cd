import { describe, expect, it } from "vitest";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import type { SessionCreate, SessionQuery } from "../../src/experiments/contract/sessions.ts";
import { datasetOperations } from "../../src/experiments/datasets/datasets.ts";
import { readExperiments } from "../../src/experiments/lookups.ts";
import { refreshDirty } from "../../src/experiments/sessions/refresh-stats.ts";
import { sessionOperations } from "../../src/experiments/sessions/sessions.ts";
import { findDataset } from "../../src/experiments/storage/datasets.ts";
import { findExperiment, markStatsDirty, setStats } from "../../src/experiments/storage/experiments.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { createDatabase, databases } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";

const CALLER = { tenant_id: "00000000-0000-4000-8000-000000000001", user_id: "user", scopes: [] };
const OUTDATED_COUNT = 7;

describe.each(databases)("a read of statistics that another request computes on %s", (name) => {
  it("does not return the old ones", async () => {
    const at = await createDatabase(name);
    const database = openOn(at, "experiments.db");
    await migrate(database, MIGRATIONS.experiments);
    const { id: dataset_id } = await datasetOperations(database).create(CALLER, { name: "dataset", data_type: "kv" });
    const body = { name: "session", reference_dataset_id: dataset_id } as SessionCreate;
    const { id } = await sessionOperations(database).create(CALLER, body, false);
    const { experiment_no = 0 } = (await findExperiment(database.read, CALLER.tenant_id, id)) ?? {};
    const { dataset_no = 0 } = (await findDataset(database.read, CALLER.tenant_id, dataset_id)) ?? {};
    const query = { id: [id], include_stats: true, limit: 1, offset: 0 } as SessionQuery;
    const reads: ((database: Database) => Promise<unknown>)[] = [
      async (on) => (await sessionOperations(on).list(CALLER, query))[0]?.run_count,
      async (on) => (await sessionOperations(on).read(CALLER, id, true)).run_count,
      async (on) => JSON.parse((await readExperiments(on, CALLER, dataset_no, [id]))[0]?.stats ?? "").run_count,
    ];
    for (const read of reads) {
      await database.write(async (tx) => {
        await setStats(tx, experiment_no, JSON.stringify({ run_count: OUTDATED_COUNT }));
        await markStatsDirty(tx, [experiment_no]);
      });
      const other = () => refreshDirty(database, CALLER, { id: [id] });
      expect(await read(beforeCheck(database, other)), String(read)).toBe(0);
    }
    await database.close();
    await at.drop();
  });
});

/** A connection that waits for `work` before the query for outdated statistics, and for nothing before other queries. */
function beforeCheck(database: Database, work: () => Promise<void>): Database {
  const { read } = database;
  const all: typeof read.all = async (query) => {
    const { sql } = "compile" in query ? query.compile() : query;
    if (sql.includes("stats_dirty = 1")) await work();
    return read.all(query);
  };
  return { ...database, read: { ...read, all } };
}
