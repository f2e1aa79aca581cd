import { type Caller, DEFAULT_TENANT, mayUse, type Role } from "../platform/contract/caller.ts";
import type { Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { isUuid, newId } from "../platform/lib/ids.ts";
import { isoOfMilliseconds } from "../platform/lib/times.ts";
import type { VaultContext } from "./context.ts";
import type { Member, Workspace, WorkspaceCreate } from "./contract/admin.ts";
import type { WorkspaceMemberRow, WorkspaceRow } from "./storage/schema.ts";
import {
  deleteMember,
  findWorkspace,
  findWorkspaceByName,
  insertMember,
  insertWorkspace,
  listMembers,
  listWorkspaces,
} from "./storage/workspaces.ts";

/** Administrators of the default workspace manage all workspaces; other administrators only their own. */
export const isOperator = (caller: Caller): boolean => caller.tenant_id === DEFAULT_TENANT && mayUse(caller, "admin");

export class Workspaces {
  readonly #database: VaultContext["database"];

  constructor({ database }: Pick<VaultContext, "database">) {
    this.#database = database;
  }

  async list(caller: Caller): Promise<Workspace[]> {
    const rows = await listWorkspaces(this.#database.read, isOperator(caller) ? undefined : caller.tenant_id);
    return rows.map(workspaceOf);
  }

  /** @throws ApiError operator_needed, workspace_exists */
  async create(caller: Caller, { name, tenant_id = newId() }: WorkspaceCreate): Promise<Workspace> {
    if (!isOperator(caller)) throw new ApiError("operator_needed");
    const created = await this.#database.write((tx) => insertWorkspace(tx, { tenant_id, name }));
    if (!created) throw new ApiError("workspace_exists");
    return workspaceOf(created);
  }

  async listMembers(caller: Caller, tenant_id: string): Promise<Member[]> {
    await requireWorkspace(this.#database.read, caller, tenant_id);
    return (await listMembers(this.#database.read, tenant_id)).map(memberOf);
  }

  /** @param role undefined keeps the role of an existing member and adds a new user as `member` */
  async putMember(caller: Caller, tenant_id: string, user_id: string, role: Role | undefined): Promise<Member> {
    const member = await this.#database.write(async (tx) => {
      await requireWorkspace(tx, caller, tenant_id);
      return insertMember(tx, { tenant_id, user_id, role });
    });
    this.#database.hints.emit({ kind: "access" });
    return memberOf(member);
  }

  async deleteMember(caller: Caller, tenant_id: string, user_id: string): Promise<void> {
    await requireWorkspace(this.#database.read, caller, tenant_id);
    const count = await this.#database.write((tx) => deleteMember(tx, tenant_id, user_id));
    if (count === 0) throw new ApiError("member_not_found");
    this.#database.hints.emit({ kind: "access" });
  }
}

/** @throws ApiError workspace_not_found, also when the workspace exists but the caller does not administer it */
export async function requireWorkspace(tx: Tx, caller: Caller, tenant_id: string): Promise<WorkspaceRow> {
  const isAllowed = tenant_id === caller.tenant_id || isOperator(caller);
  const workspace = isAllowed ? await findWorkspace(tx, tenant_id) : undefined;
  if (!workspace) throw new ApiError("workspace_not_found");
  return workspace;
}

/** Finds or creates a workspace by its name, or by its id when the text is a UUID. */
export async function ensureWorkspace(tx: Tx, text: string): Promise<WorkspaceRow> {
  const tenant_id = isUuid(text) ? text.toLowerCase() : undefined;
  const created = await insertWorkspace(tx, { tenant_id: tenant_id ?? newId(), name: tenant_id ?? text });
  if (created) return created;
  const found = await (tenant_id === undefined ? findWorkspaceByName(tx, text) : findWorkspace(tx, tenant_id));
  return found as WorkspaceRow;
}

const workspaceOf = ({ tenant_id, name, created_at }: WorkspaceRow): Workspace => ({
  tenant_id,
  name,
  created_at: isoOfMilliseconds(created_at),
});

const memberOf = ({ user_id, role, created_at }: WorkspaceMemberRow): Member => ({
  user_id,
  role,
  created_at: isoOfMilliseconds(created_at),
});
