import { sql } from "kysely";
import type { Role } from "../../platform/contract/caller.ts";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import { prepared } from "../../platform/database/prepared.ts";
import { named } from "./named.ts";
import type { WorkspaceMemberRow, WorkspaceRow } from "./schema.ts";

export type NewWorkspace = Omit<WorkspaceRow, "created_at">;

/** Undefined when its id or its name is taken. */
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

/** All, or that of one id; the oldest first. */
export function listWorkspaces(tx: Tx, tenant_id: string | undefined): Promise<WorkspaceRow[]> {
  const query = tx.k.selectFrom("workspaces").selectAll();
  return tx.all(
    (tenant_id === undefined ? query : query.where("tenant_id", "=", tenant_id))
      .orderBy("created_at")
      .orderBy("tenant_id")
      .limit(MAX_WORKSPACES),
  );
}

/** In one list: the API has no pages for them. */
export const MAX_WORKSPACES = 10_000;

/** Makes a user a member; one that is gets the role, when there is one, and otherwise stays as they are. */
export async function insertMember(
  tx: Tx,
  { role, ...member }: Omit<WorkspaceMemberRow, "created_at" | "role"> & { role: Role | undefined },
): Promise<WorkspaceMemberRow> {
  // Something has to be set for the row that is there to be answered.
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

/** By their names. */
export const listMembers = (tx: Tx, tenant_id: string): Promise<WorkspaceMemberRow[]> =>
  tx.all(
    tx.k
      .selectFrom("workspace_members")
      .selectAll()
      .where("tenant_id", "=", tenant_id)
      .orderBy("user_id")
      .limit(MAX_MEMBERS),
  );

/** Of a workspace, in one list. */
export const MAX_MEMBERS = 10_000;

export const deleteMember = (tx: Tx, tenant_id: string, user_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("workspace_members").where("tenant_id", "=", tenant_id).where("user_id", "=", user_id));

/** All memberships of these users. */
export const listMembershipsOf = (tx: Tx, user_ids: readonly string[]): Promise<WorkspaceMemberRow[]> =>
  tx.all(
    sql<WorkspaceMemberRow>`select workspace_members.* from ${named(tx, user_ids)} as named
      join workspace_members on workspace_members.user_id = named.key`.compile(tx.k),
  );

/** Two of a user's memberships, or all when there are fewer: enough to know whether a workspace has to be named. */
export const someMembershipsOf = (tx: Tx, user_id: string): Promise<WorkspaceMemberRow[]> =>
  tx.all(someQuery(tx, { user_id }));

const someQuery = prepared<{ user_id: string }, WorkspaceMemberRow>((k, p) =>
  k.selectFrom("workspace_members").selectAll().where("user_id", "=", p("user_id")).limit(2),
);
