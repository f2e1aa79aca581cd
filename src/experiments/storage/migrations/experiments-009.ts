import type { Migration } from "../../../platform/database/migrate.ts";

/**
 * Adds the parent to the index of traces, to find the children of a run. Copies `experiment_runs.end_us` to a new column that can be
 * null: SQLite cannot remove `not null` from a column.
 */
export const pendingRows: Migration = {
  name: "experiments-009",
  statements: ({ types }) => [
    "drop index trace_runs_of_trace",
    "create index trace_runs_of_trace on trace_runs (tenant_id, trace_id, parent_run_id)",
    `alter table experiment_runs add column ended_us ${types.bigint}`,
    "update experiment_runs set ended_us = end_us",
    "alter table experiment_runs drop column end_us",
    "alter table experiment_runs rename column ended_us to end_us",
  ],
};
