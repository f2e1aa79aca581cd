import type { VaultContext } from "../access/index.ts";
import type { Caller } from "../platform/contract/caller.ts";
import type { Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { changeDeployment, lockForChange } from "./change-deployment.ts";
import type { DeploymentPatch } from "./contract/deployments.ts";
import type { Deployment, Revision, RevisionsList } from "./contract/records.ts";
import type { RevisionsQuery } from "./contract/revisions.ts";
import { toDeployment, toRevision } from "./deployment-wire.ts";
import { type Asking, requireDeployment } from "./deployments.ts";
import { checkSecrets } from "./secrets.ts";
import { lookNow } from "./storage/deployments.ts";
import {
  askToInterruptIfUnderWay,
  findRevision,
  isUnderWay,
  listRevisions,
  redeployIfBuilt,
} from "./storage/revisions.ts";
import type { RevisionRow } from "./storage/schema.ts";

/** A revision of a deployment, by the ids of a path. */
export interface RevisionKey {
  deployment_id: string;
  revision_id: string;
}

/** What a deployment was, is and is about to be made of. */
export class Revisions {
  readonly #database: VaultContext["database"];
  readonly #seal: VaultContext["seal"];

  constructor({ database, seal }: Pick<VaultContext, "database" | "seal">) {
    this.#database = database;
    this.#seal = seal;
  }

  /**
   * @throws ApiError deployment_not_found
   */
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

  /**
   * @throws ApiError deployment_not_found, revision_not_found
   */
  async get(caller: Caller, key: RevisionKey): Promise<Revision> {
    return toRevision(await requireRevision(this.#database.read, caller, key));
  }

  /**
   * Makes a revision, also where nothing has changed.
   *
   * @throws ApiError as {@link changeDeployment}; bad_secrets, reserved_secrets
   */
  async create(caller: Caller, deployment_id: string, patch: DeploymentPatch): Promise<Revision> {
    checkSecrets(patch.secrets ?? []);
    const change = { deployment_id, patch, always: true };
    const row = await this.#database.write((tx) => changeDeployment(tx, this.#seal, caller, change));
    this.#database.hints.emit({ kind: "deployment", deployment_id });
    return toRevision(row as RevisionRow);
  }

  /**
   * Deploys a revision again as it was built: the way back to it.
   *
   * @throws ApiError deployment_not_found, revision_not_found, deployment_is_deleted, revision_not_redeployable
   */
  async redeploy({ caller, base_url }: Asking, key: RevisionKey): Promise<Deployment> {
    const { deployment_id, revision_id } = key;
    const shown = await this.#database.write(async (tx) => {
      await lockForChange(tx, caller, deployment_id);
      const { status, artifact } = await requireRevision(tx, caller, key);
      const refuse = (reason: string) => new ApiError("revision_not_redeployable", { revision_id, reason });
      if (await isUnderWay(tx, deployment_id))
        throw refuse("a revision of this deployment is under way. Wait for its end, or interrupt it.");
      if (status === "DEPLOYED" && artifact === null)
        throw refuse("its build is not kept any more, as others were deployed after it. Deploy its source again.");
      if ((await redeployIfBuilt(tx, revision_id)) === 0)
        throw refuse(`its status is ${status}, and only what was DEPLOYED before can be.`);
      await lookNow(tx, deployment_id);
      return requireDeployment(tx, caller, deployment_id);
    });
    this.#database.hints.emit({ kind: "deployment", deployment_id });
    return toDeployment(shown, caller, this.#seal, base_url);
  }

  /**
   * Asks for the end of a revision that is under way. What serves is not touched.
   *
   * @throws ApiError deployment_not_found, revision_not_found, revision_ended
   */
  async interrupt(caller: Caller, key: RevisionKey): Promise<Revision> {
    const { deployment_id, revision_id } = key;
    const row = await this.#database.write(async (tx) => {
      const { status } = await requireRevision(tx, caller, key);
      const asked = await askToInterruptIfUnderWay(tx, { tenant_id: caller.tenant_id, ...key });
      if (!asked) throw new ApiError("revision_ended", { revision_id, status });
      await lookNow(tx, deployment_id);
      return asked;
    });
    this.#database.hints.emit({ kind: "deployment", deployment_id });
    return toRevision(row);
  }
}

/**
 * @throws ApiError deployment_not_found, revision_not_found
 */
export async function requireRevision(tx: Tx, caller: Caller, key: RevisionKey): Promise<RevisionRow> {
  const row = await findRevision(tx, { tenant_id: caller.tenant_id, ...key });
  if (row) return row;
  await requireDeployment(tx, caller, key.deployment_id);
  throw new ApiError("revision_not_found", { revision_id: key.revision_id });
}
