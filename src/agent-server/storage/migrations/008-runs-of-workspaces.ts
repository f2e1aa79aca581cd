import type { Migration } from "../../../platform/database/migrate.ts";

/** Indexes of a workspace's runs: by acceptance for lists over all threads, and by end for counts by minute. */
export const runsOfWorkspaces: Migration = {
  name: "008-runs-of-workspaces",
  statements: () => [
    "create index runs_of_workspace on runs (tenant_id, created_at, seq)",
    // Active runs have a null ended_at. A covering index: counts without an access filter read no rows.
    "create index runs_by_end on runs (tenant_id, ended_at, started_at, created_at)",
  ],
};
