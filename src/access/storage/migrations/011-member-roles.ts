import type { Migration } from "../../../platform/database/migrate.ts";

/** What a member of a workspace may do there: `member` or `admin`. */
export const memberRoles: Migration = {
  name: "011-member-roles",
  statements: () => ["alter table workspace_members add column role text not null default 'member'"],
};
