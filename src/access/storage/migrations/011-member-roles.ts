import type { Migration } from "../../../platform/database/migrate.ts";

/** The role of a workspace member: `member` or `admin`. */
export const memberRoles: Migration = {
  name: "011-member-roles",
  statements: () => ["alter table workspace_members add column role text not null default 'member'"],
};
