import type { Migration } from "../../../platform/database/migrate.ts";

/**
 * Gives the table of migration 007 a descriptive name. Instances of an earlier version may serve while those of a new revision migrate the
 * database that they share. The statements of the earlier version that claim runs use the former name, so a view keeps it readable.
 */
export const activeRollout: Migration = {
  name: "015-active-rollout",
  statements: ({ name }) => [
    "alter table claimant rename to active_rollout",
    ...(name === "postgres"
      ? [
          "alter table active_rollout rename constraint claimant_key to active_rollout_key",
          "alter table active_rollout rename constraint claimant_is_one to active_rollout_is_one",
        ]
      : []),
    "create view claimant as select id, rollout, since from active_rollout",
  ],
};
