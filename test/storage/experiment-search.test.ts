import { describe, expect, it } from "vitest";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import { searchRunKeys } from "../../src/experiments/storage/runs.ts";
import { traceRunsQuery } from "../../src/experiments/storage/traces/trace-search.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { createDatabase } from "../support/databases.ts";
import { planOf } from "../support/query-plan.ts";
import { openOn } from "../support/storage.ts";

const TENANT = "00000000-0000-4000-8000-000000000001";

describe("a search in experiments", () => {
  it("reads the runs of these experiments only, however many there are", async () => {
    const at = await createDatabase("sqlite");
    const database = openOn(at, "experiments.db");
    await migrate(database, MIGRATIONS.experiments);
    for (const count of [1, 5, 100]) {
      const experiment_no = Array.from({ length: count }, (_, index) => index + 1);
      const search = { experiment_no, filters: [{ op: "search" as const, words: ["word"] }] };
      const uploaded = await planOf(database, (tx) => searchRunKeys(tx, TENANT, search));
      expect(uploaded, `${count} experiments`).toContain("SEARCH r USING PRIMARY KEY (experiment_no=?)");
      const traced = await planOf(database, (tx) =>
        tx.all(traceRunsQuery(tx, TENANT, { ...search, root_filters: [], tree_filters: [] })),
      );
      expect(traced, `${count} sessions`).toMatch(/SEARCH r USING INDEX \w+ \(experiment_no=\?\)/);
    }
    const byId = await planOf(database, (tx) => searchRunKeys(tx, TENANT, { id: [TENANT], filters: [] }));
    expect(byId).toMatch(/SEARCH r USING INDEX \S+ \(tenant_id=\? AND run_id=\?\)/);
    await database.close();
    await at.drop();
  });
});
