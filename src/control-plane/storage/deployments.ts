import { sql } from "kysely";
import { nowMs, type Tx } from "../../platform/database/database.ts";
import type { DeploymentStatus } from "../contract/records.ts";
import type { DeploymentRow, RevisionRow } from "./schema.ts";

/** A deployment with fields of its latest revision. These fields are null if there is no revision. */
export type ShownDeployment = DeploymentRow & {
  source_revision_config: string | null;
  image_version: string | null;
};

const INITIAL = {
  status: "READY",
  database_password: null,
  active_revision_id: null,
  lease_holder: null,
  lease_until: null,
  lease_epoch: 0,
  look_at: nowMs,
  created_at: nowMs,
  updated_at: nowMs,
} as const;

export type NewDeployment = Omit<DeploymentRow, keyof typeof INITIAL>;

/** Returns undefined if the name exists in the workspace, or the slug in any workspace. */
export const insertDeployment = (tx: Tx, deployment: NewDeployment): Promise<DeploymentRow | undefined> =>
  tx.first(
    tx.k
      .insertInto("deployments")
      .values({ ...deployment, ...INITIAL })
      .onConflict((conflict) => conflict.doNothing())
      .returningAll(),
  );

/** Stores a password unless an earlier call has stored one. Returns the stored password. */
export async function setDatabasePasswordIfUnset(tx: Tx, deployment_id: string, sealed: string): Promise<string> {
  const query = tx.k
    .updateTable("deployments")
    .set(({ fn, ref, val }) => ({ database_password: fn.coalesce(ref("database_password"), val(sealed)) }))
    .where("deployment_id", "=", deployment_id)
    .returning("database_password");
  return (await tx.first(query))?.database_password ?? sealed;
}

/** Replaces a password that cannot be decrypted. @returns the stored password: the given one, or that of another call */
export async function replaceDatabasePassword(
  tx: Tx,
  deployment_id: string,
  lost: string,
  sealed: string,
): Promise<string> {
  const own = tx.k
    .updateTable("deployments")
    .set({ database_password: sealed })
    .where("deployment_id", "=", deployment_id);
  await tx.run(own.where("database_password", "=", lost));
  return setDatabasePasswordIfUnset(tx, deployment_id, sealed);
}

export const findDeploymentByName = (tx: Tx, tenant_id: string, name: string): Promise<DeploymentRow | undefined> =>
  tx.first(tx.k.selectFrom("deployments").selectAll().where("tenant_id", "=", tenant_id).where("name", "=", name));

/** Locks the row, which serializes the changes of a deployment and its revisions. */
export const lockDeployment = (tx: Tx, tenant_id: string, deployment_id: string): Promise<DeploymentRow | undefined> =>
  tx.first(
    tx.dialect.forUpdate(
      tx.k
        .selectFrom("deployments")
        .selectAll()
        .where((e) => e.and({ tenant_id, deployment_id })),
    ),
  );

const shownDeployments = (tx: Tx) =>
  tx.k
    .selectFrom("deployments as d")
    .leftJoin("revisions as r", "r.revision_id", "d.latest_revision_id")
    .selectAll("d")
    .select(["r.source_revision_config", "r.image_version"]);

export const findDeployment = (
  tx: Tx,
  tenant_id: string,
  deployment_id: string,
): Promise<ShownDeployment | undefined> =>
  tx.first(shownDeployments(tx).where("d.tenant_id", "=", tenant_id).where("d.deployment_id", "=", deployment_id));

interface DeploymentFilter {
  tenant_id: string;
  limit: number;
  offset: number;
  name?: string | undefined;
  name_contains?: string | undefined;
  status?: string | undefined;
  /** Whether the deployment is bound to a listener. */
  has_listener?: boolean | undefined;
  image_version?: string | undefined;
  deployment_type?: string | undefined;
  deployment_ids?: readonly string[] | undefined;
}

/** Newest first. With `name_contains`, an exact match is listed first. */
export function listDeployments(tx: Tx, filter: DeploymentFilter): Promise<ShownDeployment[]> {
  const { name, name_contains, status, has_listener, image_version, deployment_type, deployment_ids } = filter;
  const configField = (field: string) => tx.dialect.jsonText(sql.ref<string>("d.source_config"), field);
  let query = shownDeployments(tx).where("d.tenant_id", "=", filter.tenant_id);
  if (name !== undefined) query = query.where("d.name", "=", name);
  if (name_contains !== undefined)
    query = query
      .where(tx.dialect.containsText(sql.ref<string>("d.name"), name_contains))
      .orderBy(sql`case when d.name = ${name_contains} then 0 else 1 end`);
  if (status !== undefined) query = query.where("d.status", "=", status as DeploymentStatus);
  if (has_listener !== undefined) query = query.where(configField("listener_id"), has_listener ? "is not" : "is", null);
  if (image_version !== undefined) query = query.where("r.image_version", "=", image_version);
  if (deployment_type !== undefined) query = query.where(configField("deployment_type"), "=", deployment_type);
  if (deployment_ids !== undefined) query = query.where("d.deployment_id", "in", deployment_ids);
  return tx.all(
    query.orderBy("d.created_at", "desc").orderBy("d.deployment_id", "desc").limit(filter.limit).offset(filter.offset),
  );
}

/** First key of the advisory locks for creating deployments; the second key is derived from the workspace ID. */
const CREATION_LOCKS = sql.lit(20_243);

/** On Postgres, makes the creations of a workspace wait for each other: each counts the others. */
export async function lockCreation(tx: Tx, tenant_id: string): Promise<void> {
  if (tx.dialect.name === "postgres")
    await tx.run(sql`select pg_advisory_xact_lock(${CREATION_LOCKS}, hashtext(${tenant_id}))`.compile(tx.k));
}

/** Excludes deployments that are being deleted. */
export async function countDeployments(tx: Tx, tenant_id: string, deployment_type?: string): Promise<number> {
  let query = tx.k
    .selectFrom("deployments")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("tenant_id", "=", tenant_id)
    .where("status", "<>", "AWAITING_DELETE");
  if (deployment_type !== undefined)
    query = query.where(tx.dialect.jsonText(sql.ref<string>("source_config"), "deployment_type"), "=", deployment_type);
  return Number((await tx.first(query))?.count ?? 0);
}

type Changes = Partial<Pick<DeploymentRow, "source_config" | "secrets" | "secret_references">>;

export const updateDeployment = (tx: Tx, deployment_id: string, changes: Changes): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("deployments")
      .set({ ...changes, updated_at: nowMs })
      .where("deployment_id", "=", deployment_id),
  );

/** Records a new revision and requests a reconciliation. */
export const setLatestRevision = (
  tx: Tx,
  { deployment_id, revision_id, seq }: Pick<RevisionRow, "deployment_id" | "revision_id" | "seq">,
): Promise<number> =>
  tx.run(
    tx.k
      .updateTable("deployments")
      .set({ latest_revision_id: revision_id, next_seq: seq + 1, look_at: nowMs, updated_at: nowMs })
      .where("deployment_id", "=", deployment_id),
  );

/** Makes the deployment claimable by a reconciler immediately. */
export const requestReconcile = (tx: Tx, deployment_id: string): Promise<number> =>
  tx.run(tx.k.updateTable("deployments").set({ look_at: nowMs }).where("deployment_id", "=", deployment_id));

/** Returns the IDs of existing deployments, including deployments that were already being deleted. */
export async function markForDeletion(
  tx: Tx,
  tenant_id: string,
  deployment_ids: readonly string[],
): Promise<Set<string>> {
  const rows = await tx.all(
    tx.k
      .updateTable("deployments")
      .set({ status: "AWAITING_DELETE", look_at: nowMs, updated_at: nowMs })
      .where("tenant_id", "=", tenant_id)
      .where("deployment_id", "in", deployment_ids)
      .returning("deployment_id"),
  );
  return new Set(rows.map((row) => row.deployment_id));
}

/** The caller must have stopped the instances. */
export async function deleteDeploymentRows(tx: Tx, deployment_id: string): Promise<void> {
  for (const table of ["deployment_logs", "source_uploads", "instances", "revisions", "deployments"] as const)
    await tx.run(tx.k.deleteFrom(table).where("deployment_id", "=", deployment_id));
}
