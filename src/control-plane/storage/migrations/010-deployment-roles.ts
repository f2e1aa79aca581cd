import type { Migration } from "../../../platform/database/migrate.ts";

/** On Postgres each deployment logs in as a role of its own; its password, sealed. Null until an instance needs it. */
export const deploymentRoles: Migration = {
  name: "010-deployment-roles",
  statements: () => ["alter table deployments add column database_password text"],
};
