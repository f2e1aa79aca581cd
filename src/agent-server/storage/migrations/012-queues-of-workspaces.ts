import type { Migration } from "../../../platform/database/migrate.ts";

/** The queue of each workspace: a claim must not scan all runs of one workspace to find those of another. */
export const queuesOfWorkspaces: Migration = {
  name: "012-queues-of-workspaces",
  statements: () => [
    "create index runs_queue_of_workspace on runs (tenant_id, start_at, seq) where status = 'pending'",
  ],
};
