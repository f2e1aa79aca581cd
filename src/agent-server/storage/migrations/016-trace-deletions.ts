import type { Migration } from "../../../platform/database/migrate.ts";

/** Requests to delete the traces of deleted runs. The traces may be in another database. */
export const traceDeletions: Migration = {
  name: "016-trace-deletions",
  statements: ({ types }) => [
    `create table trace_deletions (
      run_id text not null primary key, tenant_id text not null, created_at ${types.bigint} not null,
      done integer not null)`,
  ],
};
