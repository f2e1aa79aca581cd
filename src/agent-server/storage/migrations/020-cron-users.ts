import type { Migration } from "../../../platform/database/migrate.ts";

/** The creator of a cron, if it is a user of the project's authentication handler. */
export const cronUsers: Migration = {
  name: "020-cron-users",
  statements: () => ["alter table crons add column auth_user text"],
};
