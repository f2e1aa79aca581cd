import type { VaultContext } from "../access/index.ts";
import type { Caller } from "../platform/contract/caller.ts";
import type { Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { changeDeployment } from "./change-deployment.ts";
import type { BatchDeleted, DeploymentCreate, DeploymentPatch, DeploymentsQuery } from "./contract/deployments.ts";
import type { Deployment, DeploymentsList } from "./contract/records.ts";
import { createDeployment } from "./create-deployment.ts";
import { toDeployment } from "./deployment-wire.ts";
import { checkSecrets } from "./secrets.ts";
import {
  countDeployments,
  findDeployment,
  listDeployments,
  markForDeletion,
  type ShownDeployment,
} from "./storage/deployments.ts";

/** Who asks, and by which address they know us. */
export interface Asking {
  caller: Caller;
  base_url: string;
}

/** Deployments as they are wanted. Whatever has to be done about it is the reconciler's, who is told of it. */
export class Deployments {
  readonly #database: VaultContext["database"];
  readonly #seal: VaultContext["seal"];

  constructor({ database, seal }: Pick<VaultContext, "database" | "seal">) {
    this.#database = database;
    this.#seal = seal;
  }

  async list({ caller, base_url }: Asking, query: DeploymentsQuery): Promise<DeploymentsList> {
    const { limit, offset, name, name_contains, status, image_version, deployment_type } = query;
    const { tag_value_ids = [], deployment_ids = [] } = query;
    // Nothing has a tag or an agent, so nothing has one of these. `langgraph deploy --agent-id` deploys onto whatever is found.
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

  /**
   * @throws ApiError deployment_not_found
   */
  async get({ caller, base_url }: Asking, deployment_id: string): Promise<Deployment> {
    const row = await requireDeployment(this.#database.read, caller, deployment_id);
    return toDeployment(row, caller, this.#seal, base_url);
  }

  /**
   * @throws ApiError deployment_exists, deployment_is_deleted, bad_source, bad_secrets, reserved_secrets
   */
  async create(asking: Asking, given: DeploymentCreate): Promise<Deployment> {
    checkSecrets(given.secrets ?? []);
    const deployment_id = await this.#database.write((tx) => createDeployment(tx, this.#seal, asking.caller, given));
    this.#database.hints.emit({ kind: "deployment", deployment_id });
    return this.get(asking, deployment_id);
  }

  /**
   * @throws ApiError as {@link changeDeployment}; bad_secrets, reserved_secrets
   */
  async patch(asking: Asking, deployment_id: string, patch: DeploymentPatch): Promise<Deployment> {
    checkSecrets(patch.secrets ?? []);
    const change = { deployment_id, patch, always: false };
    await this.#database.write((tx) => changeDeployment(tx, this.#seal, asking.caller, change));
    this.#database.hints.emit({ kind: "deployment", deployment_id });
    return this.get(asking, deployment_id);
  }

  /**
   * @throws ApiError deployment_not_found
   */
  async delete(caller: Caller, deployment_id: string): Promise<void> {
    const { deleted } = await this.#mark(caller, [deployment_id]);
    if (deleted.length === 0) throw new ApiError("deployment_not_found", { deployment_id });
  }

  /**
   * @throws ApiError deployment_not_found when none of them is there
   */
  async deleteMany(caller: Caller, deployment_ids: readonly string[]): Promise<BatchDeleted> {
    const ends = await this.#mark(caller, [...new Set(deployment_ids)]);
    if (ends.deleted.length === 0)
      throw new ApiError("deployment_not_found", { deployment_id: ends.not_found.slice(0, 10).join(", ") });
    return ends;
  }

  async #mark({ tenant_id }: Caller, deployment_ids: readonly string[]): Promise<BatchDeleted> {
    const marked = await this.#database.write((tx) => markForDeletion(tx, tenant_id, deployment_ids));
    for (const deployment_id of marked) this.#database.hints.emit({ kind: "deployment", deployment_id });
    return {
      deleted: deployment_ids.filter((id) => marked.has(id)),
      not_found: deployment_ids.filter((id) => !marked.has(id)),
    };
  }

  async countFree({ tenant_id }: Caller): Promise<{ count: number }> {
    return { count: await countDeployments(this.#database.read, tenant_id, "dev_free") };
  }

  /**
   * There is no registry here to push to.
   *
   * @throws ApiError always: deployment_not_found, push_token_source or no_registry
   */
  async refusePushToken(caller: Caller, deployment_id: string): Promise<never> {
    const { source } = await requireDeployment(this.#database.read, caller, deployment_id);
    throw new ApiError(source === "internal_docker" ? "no_registry" : "push_token_source");
  }
}

/**
 * @throws ApiError deployment_not_found, also for one of somebody else
 */
export async function requireDeployment(tx: Tx, caller: Caller, deployment_id: string): Promise<ShownDeployment> {
  const row = await findDeployment(tx, caller.tenant_id, deployment_id);
  if (!row) throw new ApiError("deployment_not_found", { deployment_id });
  return row;
}
