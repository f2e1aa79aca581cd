import type { Migration } from "../../../platform/database/migrate.ts";

const TABLES = ["examples", "example_versions", "experiment_runs", "experiment_outputs", "feedback"];

/** Renames the column `ord`. Both databases also rename it in keys and indexes, and do not rewrite the rows. */
export const exampleIndexes: Migration = {
  name: "experiments-002",
  statements: () => [
    ...TABLES.map((table) => `alter table ${table} rename column ord to example_index`),
    "alter table datasets rename column next_ord to next_example_index",
  ],
};
