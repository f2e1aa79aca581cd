import { type RawBuilder, sql } from "kysely";
import type { Role } from "../../platform/contract/caller.ts";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { WorkspaceMemberRow, WorkspaceRow } from "./schema.ts";

export type NewWorkspace = Omit<WorkspaceRow, "created_at">;

/** Returns undefined if the ID or the name is taken. */
export const insertWorkspace = (tx: Tx, workspace: NewWorkspace): Promise<WorkspaceRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("workspaces")
      .values({ ...workspace, created_at: nowMs })
      .onConflict((conflict) => conflict.doNothing())
      .returningAll(),
  );

export const findWorkspace = (tx: Tx, tenant_id: string): Promise<WorkspaceRow | undefined> =>
  tx.first(tx.k.selectFrom("workspaces").selectAll().where("tenant_id", "=", tenant_id));

export const findWorkspaceByName = (tx: Tx, name: string): Promise<WorkspaceRow | undefined> =>
  tx.first(tx.k.selectFrom("workspaces").selectAll().where("name", "=", name));

/** All workspaces, or only the workspace with this ID; oldest first. */
export function listWorkspaces(tx: Tx, tenant_id: string | undefined): Promise<WorkspaceRow[]> {
  const query = tx.k.selectFrom("workspaces").selectAll();
  return tx.all(
    (tenant_id === undefined ? query : query.where("tenant_id", "=", tenant_id))
      .orderBy("created_at")
      .orderBy("tenant_id")
      .limit(MAX_WORKSPACES),
  );
}

/** Maximum number of workspaces in a list. The API has no pagination for workspaces. */
export const MAX_WORKSPACES = 10_000;

/** Adds a member. An existing member gets the new role; without a role the member stays unchanged. */
export async function insertMember(
  tx: Tx,
  { role, ...member }: Omit<WorkspaceMemberRow, "created_at" | "role"> & { role: Role | undefined },
): Promise<WorkspaceMemberRow> {
  // RETURNING returns an existing row only if the statement updates a column.
  const changes = role === undefined ? { user_id: member.user_id } : { role };
  const row = await tx.first(
    tx.k
      .insertInto("workspace_members")
      .values({ ...member, role: role ?? "member", created_at: nowMs })
      .onConflict((conflict) => conflict.columns(["tenant_id", "user_id"]).doUpdateSet(changes))
      .returningAll(),
  );
  return row as WorkspaceMemberRow;
}

export const findMember = (tx: Tx, tenant_id: string, user_id: string): Promise<WorkspaceMemberRow | undefined> =>
  tx.first(findMemberQuery(tx, { tenant_id, user_id }));

const findMemberQuery = prepared<{ tenant_id: string; user_id: string }, WorkspaceMemberRow>((k, p) =>
  k
    .selectFrom("workspace_members")
    .selectAll()
    .where("tenant_id", "=", p("tenant_id"))
    .where("user_id", "=", p("user_id")),
);

/** Ordered by user id. */
export const listMembers = (tx: Tx, tenant_id: string): Promise<WorkspaceMemberRow[]> =>
  tx.all(
    tx.k
      .selectFrom("workspace_members")
      .selectAll()
      .where("tenant_id", "=", tenant_id)
      .orderBy("user_id")
      .limit(MAX_MEMBERS),
  );

/** Maximum number of members in a list. The API has no pagination for members. */
export const MAX_MEMBERS = 10_000;

export const deleteMember = (tx: Tx, tenant_id: string, user_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("workspace_members").where("tenant_id", "=", tenant_id).where("user_id", "=", user_id));

/** All memberships of these users, with one bind parameter for any number of users. */
export const listMembershipsOf = (tx: Tx, user_ids: readonly string[]): Promise<WorkspaceMemberRow[]> =>
  tx.all(
    sql<WorkspaceMemberRow>`select workspace_members.* from ${stringTable(tx, user_ids)} as users
      join workspace_members on workspace_members.user_id = users.key`.compile(tx.k),
  );

/** At most two memberships of a user: enough to decide whether the request must select a workspace. */
export const listFirstMemberships = (tx: Tx, user_id: string): Promise<WorkspaceMemberRow[]> =>
  tx.all(firstMembershipsQuery(tx, { user_id }));

const firstMembershipsQuery = prepared<{ user_id: string }, WorkspaceMemberRow>((k, p) =>
  k.selectFrom("workspace_members").selectAll().where("user_id", "=", p("user_id")).limit(2),
);

/** A list of strings as a table with the column `key`. It takes one bind parameter; `in` takes one per string. */
export const stringTable = (tx: Tx, strings: readonly string[]): RawBuilder<unknown> =>
  tx.dialect.jsonEntries(sql`${JSON.stringify(Object.fromEntries(strings.map((text) => [text, 0])))}`);
