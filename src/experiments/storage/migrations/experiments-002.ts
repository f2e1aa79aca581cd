import type { Migration } from "../../../platform/database/migrate.ts";

const TABLES = ["examples", "example_versions", "experiment_runs", "experiment_outputs", "feedback"];

/** Renames `ord`. Both databases rename the columns of keys and indexes, too, without a rewrite of the rows. */
export const exampleIndexes: Migration = {
  name: "experiments-002",
  statements: () => [
    ...TABLES.map((table) => `alter table ${table} rename column ord to example_index`),
    "alter table datasets rename column next_ord to next_example_index",
  ],
};
