import type { Migration } from "../../../platform/database/migrate.ts";

/** Users of the project's authentication handler. */
export const cronUsers: Migration = {
  name: "020-cron-users",
  statements: () => ["alter table crons add column auth_user text"],
};
