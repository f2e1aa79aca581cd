import type { Migration } from "../../../platform/database/migrate.ts";

/** Whether an instance authenticates users with handlers of the project. */
export const instanceAuth: Migration = {
  name: "023-instance-auth",
  statements: () => ["alter table instances add column custom_auth integer not null default 0"],
};
