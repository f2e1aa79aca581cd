import type { Migration } from "../../../platform/database/migrate.ts";

/** Times to live of threads. They count from the last update of a thread. */
export const threadTtl: Migration = {
  name: "021-thread-ttl",
  statements: ({ types }) => [
    "alter table threads add column ttl_strategy text",
    `alter table threads add column ttl_ms ${types.bigint}`,
    // 1 after the sweeper has pruned the thread, until a client changes the thread or it has a new state.
    "alter table threads add column pruned integer not null default 0",
    "create index threads_expiring on threads ((updated_at + ttl_ms)) where ttl_ms is not null and pruned = 0",
  ],
};
