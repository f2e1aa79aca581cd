import type { Migration } from "../../../platform/database/migrate.ts";

/** The active rollout among those whose instances share the database of a deployment. At most one row. */
export const executingRollout: Migration = {
  name: "007-claimant",
  statements: ({ types }) => [
    `create table claimant (
      id integer not null, rollout ${types.bigint} not null, since ${types.bigint} not null,
      constraint claimant_key primary key (id), constraint claimant_is_one check (id = 1))`,
  ],
};
