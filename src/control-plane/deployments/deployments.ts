import { randomBytes } from "node:crypto";
import type { Seal, VaultContext } from "../../access/index.ts";
import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { BatchDeleted, DeploymentCreate, DeploymentPatch, DeploymentsQuery } from "../contract/deployments.ts";
import type { Deployment, DeploymentsList, SourceConfig } from "../contract/records.ts";
import {
  countDeployments,
  findDeployment,
  findDeploymentByName,
  insertDeployment,
  listDeployments,
  lockCreation,
  markForDeletion,
  type NewDeployment,
  type ShownDeployment,
} from "../storage/deployments.ts";
import { findListener } from "../storage/listeners.ts";
import { insertRevision } from "../storage/revisions.ts";
import type { DeploymentRow, RevisionRow } from "../storage/schema.ts";
import { toDeployment } from "./api-records.ts";
import { type Change, changeDeployment } from "./change-deployment.ts";
import { checkSecrets, sealSecrets } from "./secrets.ts";
import { checkSource, hasRevisionFields, newSourceConfig, revisionConfigOf } from "./source-rules.ts";

export interface RequestContext {
  caller: Caller;
  /** Public URL of this service. */
  base_url: string;
}

export type DeploymentsContext = Pick<VaultContext, "database" | "seal" | "log">;

export interface DeploymentsSettings {
  /** Maximum number of deployments in a workspace; undefined if it is not limited. */
  max_deployments: number | undefined;
}

/** Writes the desired state of deployments to the database and notifies the reconcilers of changes. */
export class Deployments {
  readonly #database: VaultContext["database"];
  readonly #seal: VaultContext["seal"];
  readonly #log: VaultContext["log"];
  readonly #settings: DeploymentsSettings;

  constructor({ database, seal, log, settings }: DeploymentsContext & { settings: DeploymentsSettings }) {
    this.#database = database;
    this.#seal = seal;
    this.#log = log;
    this.#settings = settings;
  }

  async list({ caller, base_url }: RequestContext, query: DeploymentsQuery): Promise<DeploymentsList> {
    const { limit, offset, name, name_contains, status, image_version, deployment_type } = query;
    const { tag_value_ids = [], deployment_ids = [] } = query;
    // Deployments have no tags or agents. The result must be empty: `langgraph deploy --agent-id` deploys to the first result.
    if (tag_value_ids.length > 0 || query.agent_id || query.agent_environment) return { resources: [], offset };
    const rows = await listDeployments(this.#database.read, {
      tenant_id: caller.tenant_id,
      limit,
      offset,
      name: name || undefined,
      name_contains: name_contains || undefined,
      status: status || undefined,
      has_listener: query.remote_reconciled,
      image_version: image_version || undefined,
      deployment_type,
      deployment_ids: deployment_ids.length > 0 ? deployment_ids.map((id) => id.toLowerCase()) : undefined,
    });
    const resources = rows.map((row) => toDeployment(row, caller, this.#seal, base_url));
    return { resources, offset: offset + resources.length };
  }

  /** @throws ApiError deployment_not_found */
  async get({ caller, base_url }: RequestContext, deployment_id: string): Promise<Deployment> {
    const row = await requireDeployment(this.#database.read, caller, deployment_id);
    return toDeployment(row, caller, this.#seal, base_url);
  }

  /** @throws ApiError as {@link createDeployment}; bad_secrets, reserved_secrets, too_many_deployments */
  async create(context: RequestContext, given: DeploymentCreate): Promise<Deployment> {
    checkSecrets(given.secrets ?? []);
    const { max_deployments: max } = this.#settings;
    const deployment_id = await this.#database.write(async (tx) => {
      if (max !== undefined) await lockCreation(tx, context.caller.tenant_id);
      const id = await createDeployment(tx, this.#seal, context.caller, given);
      if (max !== undefined && (await countDeployments(tx, context.caller.tenant_id)) > max)
        throw new ApiError("too_many_deployments", { max });
      return id;
    });
    this.#database.hints.emit({ kind: "deployment", deployment_id });
    const deployment = await this.get(context, deployment_id);
    const { source, latest_revision_id } = deployment;
    this.#log.info({ deployment_id, workspace_id: context.caller.tenant_id, source }, "deployment created");
    if (latest_revision_id !== null)
      this.#log.info({ deployment_id, revision_id: latest_revision_id, source }, "revision created");
    return deployment;
  }

  /** @throws ApiError as {@link changeDeployment}; bad_secrets, reserved_secrets */
  async patch(context: RequestContext, deployment_id: string, patch: DeploymentPatch): Promise<Deployment> {
    await this.change(context.caller, { deployment_id, patch, always_creates: false });
    return this.get(context, deployment_id);
  }

  /**
   * @returns the revision, if one was created
   * @throws ApiError as {@link changeDeployment}; bad_secrets, reserved_secrets
   */
  async change(caller: Caller, change: Change): Promise<RevisionRow | undefined> {
    checkSecrets(change.patch.secrets ?? []);
    const { deployment_id } = change;
    const revision = await this.#database.write((tx) => changeDeployment(tx, this.#seal, caller, change));
    this.#database.hints.emit({ kind: "deployment", deployment_id });
    if (revision) {
      const { revision_id, source } = revision;
      this.#log.info({ deployment_id, revision_id, source }, "revision created");
    }
    return revision;
  }

  /** @throws ApiError deployment_not_found */
  async delete(caller: Caller, deployment_id: string): Promise<void> {
    await this.deleteMany(caller, [deployment_id]);
  }

  /** @throws ApiError deployment_not_found when none of the deployments exists */
  async deleteMany({ tenant_id }: Caller, deployment_ids: readonly string[]): Promise<BatchDeleted> {
    const unique = [...new Set(deployment_ids)];
    const marked = await this.#database.write((tx) => markForDeletion(tx, tenant_id, unique));
    if (marked.size === 0)
      throw new ApiError("deployment_not_found", { deployment_id: unique.slice(0, 10).join(", ") });
    for (const deployment_id of marked) this.#database.hints.emit({ kind: "deployment", deployment_id });
    return { deleted: unique.filter((id) => marked.has(id)), not_found: unique.filter((id) => !marked.has(id)) };
  }

  async countFree({ tenant_id }: Caller): Promise<{ count: number }> {
    return { count: await countDeployments(this.#database.read, tenant_id, "dev_free") };
  }

  /** @throws ApiError always: deployment_not_found, push_token_source or no_registry */
  async refusePushToken(caller: Caller, deployment_id: string): Promise<never> {
    const { source } = await requireDeployment(this.#database.read, caller, deployment_id);
    throw new ApiError(source === "internal_docker" ? "no_registry" : "push_token_source");
  }
}

/** @throws ApiError deployment_not_found, also for a deployment of another workspace */
export async function requireDeployment(tx: Tx, caller: Caller, deployment_id: string): Promise<ShownDeployment> {
  const row = await findDeployment(tx, caller.tenant_id, deployment_id);
  if (!row) throw new ApiError("deployment_not_found", { deployment_id });
  return row;
}

/**
 * Creates a deployment with its first revision. The caller must have validated the secrets. Command-line clients create a deployment
 * before they upload the source: a deployment with an internal source and no revision config gets no revision yet.
 *
 * @throws ApiError deployment_exists, deployment_is_deleted, bad_source; unavailable when no unused slug was found
 */
export async function createDeployment(tx: Tx, seal: Seal, caller: Caller, given: DeploymentCreate): Promise<string> {
  const { source, secrets = [] } = given;
  const config = newSourceConfig(source, given.source_config);
  const first = revisionConfigOf(source, given.source_revision_config, undefined);
  const isEmpty = source.startsWith("internal_") && !hasRevisionFields(given.source_revision_config);
  if (!isEmpty) {
    checkSource(source, config, first);
    refuseTarball(first.source_tarball_path);
  }
  await requireListener(tx, caller, config);
  const [deployment_id, revision_id] = [newId(), newId()];
  const { tenant_id, user_id } = caller;
  const shared = {
    tenant_id,
    source,
    source_config: JSON.stringify(config),
    secret_references: JSON.stringify(given.secret_references ?? []),
    created_by: user_id,
  };
  await insertUnderFreeSlug(tx, {
    ...shared,
    deployment_id,
    name: given.name,
    secrets: sealSecrets(seal, { table: "deployments", tenant_id, deployment_id }, secrets),
    latest_revision_id: isEmpty ? null : revision_id,
    next_seq: isEmpty ? 1 : 2,
  });
  if (isEmpty) return deployment_id;
  await insertRevision(tx, {
    ...shared,
    revision_id,
    deployment_id,
    seq: 1,
    status: "CREATING",
    source_revision_config: JSON.stringify(first),
    secrets: sealSecrets(seal, { table: "revisions", tenant_id, revision_id }, secrets),
  });
  return deployment_id;
}

/** Rejects a tarball in the first config: an upload belongs to a deployment, so a new deployment cannot have one. */
function refuseTarball(source_tarball_path: string | null): void {
  if (source_tarball_path === null) return;
  throw new ApiError("bad_source", {
    reason:
      "source_tarball_path requires an existing deployment: create the deployment with an empty source_revision_config, and upload the tarball. Then PATCH the deployment: set source_tarball_path to the object_path of the upload.",
  });
}

/** Checks that the listener exists and, if both have namespaces, that the listener's namespaces include the deployment's. */
async function requireListener(tx: Tx, caller: Caller, { listener_id, listener_config }: SourceConfig): Promise<void> {
  if (listener_id === null) return;
  const listener = await findListener(tx, caller.tenant_id, listener_id);
  if (!listener) throw new ApiError("bad_source", { reason: `Listener ID ${listener_id} not found.` });
  const namespace = listener_config?.k8s_namespace ?? null;
  const { k8s_namespaces } = JSON.parse(listener.compute_config) as { k8s_namespaces: string[] | null };
  if (namespace === null || k8s_namespaces === null || k8s_namespaces.includes(namespace)) return;
  throw new ApiError("bad_source", {
    reason: `listener_config.k8s_namespace "${namespace}" is not one of the listener's namespaces (${k8s_namespaces.join(", ") || "none"}).`,
  });
}

/** A collision after the first attempt is improbable: the slugs after it end with 24 random bits. */
const MAX_ATTEMPTS = 5;

async function insertUnderFreeSlug(tx: Tx, deployment: Omit<NewDeployment, "slug">): Promise<DeploymentRow> {
  const plain = slugOf(deployment.name);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const slug = attempt === 0 ? plain : `${plain}-${randomBytes(3).toString("hex")}`;
    const row = await insertDeployment(tx, { ...deployment, slug });
    if (row) return row;
    const other = await findDeploymentByName(tx, deployment.tenant_id, deployment.name);
    if (other?.status === "AWAITING_DELETE") throw new ApiError("deployment_is_deleted", { name: other.name });
    if (other) throw new ApiError("deployment_exists", { name: other.name });
  }
  throw new ApiError("unavailable", {
    reason: `No unused URL path was found for the deployment "${deployment.name}". Try again, or choose another name.`,
  });
}

/** Leaves room for a suffix within the 63 characters of a DNS label. */
const MAX_SLUG_CHARS = 50;

/** Converts a name for use in paths and host names: `My Agent` becomes `my-agent`. Two names can have the same slug. */
function slugOf(name: string): string {
  const plain = name.normalize("NFKD").replaceAll(/\p{M}/gu, "").toLowerCase();
  const slug = plain.replaceAll(/[^a-z0-9]+/g, "-").slice(0, MAX_SLUG_CHARS);
  return slug.replaceAll(/^-+|-+$/g, "") || "deployment";
}
