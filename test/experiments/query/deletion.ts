import { join } from "node:path";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { openPostgres } from "../../../src/platform/database/postgres/postgres.ts";
import { openSqlite } from "../../../src/platform/database/sqlite/sqlite.ts";
import { systemClock } from "../../../src/platform/lib/clock.ts";
import { createLog } from "../../../src/platform/lib/log.ts";
import type { TestDatabase } from "../../support/databases.ts";
import { type Anything, apiOf, documented, type GetService, plain, unique } from "./api.ts";

/** All tables of experiments, but what feedback keys mean: that is of the workspace. */
const TABLES = [
  "datasets",
  "examples",
  "example_versions",
  "experiments",
  "experiment_runs",
  "experiment_outputs",
  "feedback",
  "score_vectors",
  "comparative_experiments",
] as const;

/** How many rows each table has, read beside the service. */
async function rowCounts({ url, data_dir }: TestDatabase): Promise<Record<(typeof TABLES)[number], number>> {
  const database = url
    ? openPostgres({ url, log: createLog("silent") })
    : openSqlite({ file: join(data_dir, "experiments.db"), synchronous: "normal", clock: systemClock });
  try {
    const counts = TABLES.map(async (table) => {
      const query = sql<{ n: number }>`select count(*) as n from ${sql.table(table)}`.compile(database.read.k);
      const [row] = (await database.read.all(query)) as { n: number }[];
      return [table, Number(row?.n)] as const;
    });
    return Object.fromEntries(await Promise.all(counts)) as Record<(typeof TABLES)[number], number>;
  } finally {
    await database.close();
  }
}

export function deletionScenarios(service: GetService): void {
  const api = apiOf(service);
  const counts = () => rowCounts(service().database);

  /** A dataset with two experiments, a new version of an example, a removed one, and everything else there is. */
  const everything = async () => {
    const body = documented();
    const { dataset, experiment } = await api.upload(body);
    const other = await api.upload({ ...plain(3), dataset_name: body.dataset_name });
    const experiment_ids = [experiment.id, other.experiment.id];
    await api.ok("POST", "/datasets/comparative", { experiment_ids });
    await api.ok("PATCH", `/datasets/${dataset.id}`, { baseline_experiment_id: experiment.id });
    await api.ok("PATCH", `/examples/${body.results[0]?.row_id}`, { metadata: { a: 1 } });
    await api.ok("DELETE", `/examples/${body.results[1]?.row_id}`);
    const { runs } = await api.ok("POST", "/runs/query", { session: experiment_ids });
    for (const { id } of runs) await api.ok("POST", "/feedback", { run_id: id, key: "more", score: 1 });
    return { dataset, experiment, other: other.experiment };
  };

  describe("deleting", () => {
    it("a deleted dataset leaves no rows, and other datasets keep theirs", async () => {
      await everything();
      const before = await counts();
      for (const table of TABLES) expect([table, before[table]]).not.toEqual([table, 0]);
      const { dataset } = await everything();
      const between = await counts();
      for (const table of TABLES) expect([table, between[table]]).not.toEqual([table, before[table]]);
      await api.ok("DELETE", `/datasets/${dataset.id}`);
      expect(await counts()).toEqual(before);
    });

    it("an experiment leaves its dataset, the examples and the other experiments", async () => {
      const { experiment, other } = await everything();
      const before = await counts();
      await api.ok("DELETE", `/sessions/${experiment.id}`);
      const after = await counts();
      expect(after).toEqual({
        ...before,
        experiments: before.experiments - 1,
        experiment_runs: before.experiment_runs - 2,
        experiment_outputs: before.experiment_outputs - 2,
        // Two of each row, one of the experiment, and one more on each run.
        feedback: before.feedback - 7,
        // Latency, errors, correct, tone, more.
        score_vectors: before.score_vectors - 5,
      });
      const { runs } = await api.ok("POST", "/runs/query", { session: [other.id] });
      expect(runs.map(({ inputs }: Anything) => inputs)).toHaveLength(3);
    });

    it("the last feedback of a key leaves no vector of it", async () => {
      const { experiment } = await api.upload(plain(1));
      const { runs } = await api.ok("POST", "/runs/query", { session: [experiment.id] });
      const before = await counts();
      const made = await api.ok("POST", "/feedback", { run_id: runs[0].id, key: "once", score: 1 });
      expect((await counts()).score_vectors).toBe(before.score_vectors + 1);
      await api.ok("DELETE", `/feedback/${made.id}`);
      expect(await counts()).toEqual(before);
    });

    it("an experiment makes its name free again, and a dataset its own", async () => {
      const body = plain(2);
      const { dataset, experiment } = await api.upload(body);
      await api.ok("DELETE", `/sessions/${experiment.id}`);
      const again = await api.upload(body);
      expect(again.experiment).toMatchObject({ name: experiment.name, test_run_number: 2 });
      await api.ok("DELETE", `/datasets/${dataset.id}`);
      const recreated = await api.upload(body);
      expect(recreated.experiment.test_run_number).toBe(1);
      expect(recreated.dataset.id).not.toBe(dataset.id);
      const [example] = await api.get(`/examples?dataset=${recreated.dataset.id}&limit=1`);
      expect(example.id).toBe(body.results[0]?.row_id);
    });

    it("twice is not found the second time", async () => {
      const { dataset, experiment } = await api.upload({ ...plain(1), dataset_name: unique() });
      for (const path of [`/sessions/${experiment.id}`, `/datasets/${dataset.id}`]) {
        expect(await api.ok("DELETE", path)).toEqual({ message: expect.stringMatching(/deleted$/) });
        expect((await api.send("DELETE", path)).status).toBe(404);
      }
    });
  });
}
