import type { Migration } from "../../../platform/database/migrate.ts";

/** The runs of a workspace by their acceptance, for lists over all threads, and by their end, for what is counted by the minute. */
export const runsOfWorkspaces: Migration = {
  name: "008-runs-of-workspaces",
  statements: () => [
    "create index runs_of_workspace on runs (tenant_id, created_at, seq)",
    // Those that have not ended are the null ones. Covers the counts, so that they read no rows.
    "create index runs_by_end on runs (tenant_id, ended_at, started_at, created_at)",
  ],
};
