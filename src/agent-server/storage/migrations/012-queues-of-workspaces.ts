import type { Migration } from "../../../platform/database/migrate.ts";

/** Which workspaces have runs that wait, and the queue of each: a claim must not look at all runs of one to find those of another. */
export const queuesOfWorkspaces: Migration = {
  name: "012-queues-of-workspaces",
  statements: () => [
    "create index runs_queue_of_workspace on runs (tenant_id, start_at, seq) where status = 'pending'",
  ],
};
