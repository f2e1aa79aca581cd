import type { VaultContext } from "../../access/index.ts";
import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import type { DeploymentPatch } from "../contract/deployments.ts";
import type { Deployment, Revision, RevisionsList } from "../contract/records.ts";
import type { RevisionsQuery } from "../contract/revisions.ts";
import { requestReconcile } from "../storage/deployments.ts";
import {
  findRevision,
  hasRevisionInProgress,
  listRevisions,
  redeployIfBuilt,
  requestInterruptIfInProgress,
} from "../storage/revisions.ts";
import type { RevisionRow } from "../storage/schema.ts";
import { toDeployment, toRevision } from "./api-records.ts";
import { lockForChange } from "./change-deployment.ts";
import { type Deployments, type DeploymentsContext, type RequestContext, requireDeployment } from "./deployments.ts";

export interface RevisionKey {
  deployment_id: string;
  revision_id: string;
}

export class Revisions {
  readonly #database: VaultContext["database"];
  readonly #seal: VaultContext["seal"];
  readonly #log: VaultContext["log"];
  readonly #deployments: Deployments;

  constructor({ database, seal, log }: DeploymentsContext, deployments: Deployments) {
    this.#database = database;
    this.#seal = seal;
    this.#log = log;
    this.#deployments = deployments;
  }

  /** @throws ApiError deployment_not_found */
  async list(caller: Caller, deployment_id: string, query: RevisionsQuery): Promise<RevisionsList> {
    const { limit, offset, status = [], remote_reconciled } = query;
    const deployment = await requireDeployment(this.#database.read, caller, deployment_id);
    const isBound = (JSON.parse(deployment.source_config) as { listener_id: unknown }).listener_id !== null;
    if (remote_reconciled !== undefined && remote_reconciled !== isBound) return { resources: [], offset };
    const rows = await listRevisions(this.#database.read, {
      tenant_id: caller.tenant_id,
      deployment_id,
      limit,
      offset,
      statuses: status.length > 0 ? status : undefined,
    });
    return { resources: rows.map(toRevision), offset: offset + rows.length };
  }

  /** @throws ApiError deployment_not_found, revision_not_found */
  async get(caller: Caller, key: RevisionKey): Promise<Revision> {
    return toRevision(await requireRevision(this.#database.read, caller, key));
  }

  /** @throws ApiError as {@link Deployments.change} */
  async create(caller: Caller, deployment_id: string, patch: DeploymentPatch): Promise<Revision> {
    const row = await this.#deployments.change(caller, { deployment_id, patch, always_creates: true });
    return toRevision(row as RevisionRow);
  }

  /** @throws ApiError deployment_not_found, revision_not_found, deployment_is_deleted, revision_not_redeployable */
  async redeploy({ caller, base_url }: RequestContext, key: RevisionKey): Promise<Deployment> {
    const { deployment_id, revision_id } = key;
    const { from, deployment } = await this.#database.write(async (tx) => {
      await lockForChange(tx, caller, deployment_id);
      const { status, artifact, deployed_at } = await requireRevision(tx, caller, key);
      const refuse = (reason: string) => new ApiError("revision_not_redeployable", { revision_id, reason });
      if (await hasRevisionInProgress(tx, deployment_id))
        throw refuse("a revision of this deployment is in progress. Wait until it finishes, or interrupt it.");
      if ((status === "DEPLOYED" || deployed_at !== null) && artifact === null)
        throw refuse(
          "its build was removed after newer revisions were deployed. Create a new revision from the same source.",
        );
      if ((await redeployIfBuilt(tx, revision_id)) === 0)
        throw refuse(
          `its status is ${status}, but only revisions that have been DEPLOYED can be redeployed. Create a new revision.`,
        );
      await requestReconcile(tx, deployment_id);
      return { from: status, deployment: await requireDeployment(tx, caller, deployment_id) };
    });
    this.#database.hints.emit({ kind: "deployment", deployment_id });
    this.#log.info({ ...key, from, to: "AWAITING_DEPLOY" }, "revision status changed");
    return toDeployment(deployment, caller, this.#seal, base_url);
  }

  /**
   * Interrupts a revision in progress. The active revision continues to serve requests.
   *
   * @throws ApiError deployment_not_found, revision_not_found, revision_ended
   */
  async interrupt(caller: Caller, key: RevisionKey): Promise<Revision> {
    const { deployment_id, revision_id } = key;
    const row = await this.#database.write(async (tx) => {
      const { status } = await requireRevision(tx, caller, key);
      const asked = await requestInterruptIfInProgress(tx, { tenant_id: caller.tenant_id, ...key });
      if (!asked) throw new ApiError("revision_ended", { revision_id, status });
      await requestReconcile(tx, deployment_id);
      return asked;
    });
    this.#database.hints.emit({ kind: "deployment", deployment_id });
    return toRevision(row);
  }
}

/** @throws ApiError deployment_not_found, revision_not_found */
export async function requireRevision(tx: Tx, caller: Caller, key: RevisionKey): Promise<RevisionRow> {
  const row = await findRevision(tx, { tenant_id: caller.tenant_id, ...key });
  if (row) return row;
  await requireDeployment(tx, caller, key.deployment_id);
  throw new ApiError("revision_not_found", { revision_id: key.revision_id });
}
