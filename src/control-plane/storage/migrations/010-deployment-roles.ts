import type { Migration } from "../../../platform/database/migrate.ts";

/** The sealed password of a deployment's Postgres role. Null until an instance needs it. */
export const deploymentRoles: Migration = {
  name: "010-deployment-roles",
  statements: () => ["alter table deployments add column database_password text"],
};
