import type { Seal } from "../../access/index.ts";
import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { DeploymentPatch } from "../contract/deployments.ts";
import type { Source, SourceConfig, SourceRevisionConfig } from "../contract/records.ts";
import { lockDeployment, setLatestRevision, updateDeployment } from "../storage/deployments.ts";
import { findRevision, hasRevisionInProgress, insertRevision, skipQueued } from "../storage/revisions.ts";
import type { DeploymentRow, RevisionRow } from "../storage/schema.ts";
import { extendUpload } from "../storage/uploads.ts";
import { openSecrets, sealSecrets } from "./secrets.ts";
import {
  changedSourceConfig,
  checkSource,
  findMissingField,
  hasRevisionFields,
  revisionConfigOf,
} from "./source-rules.ts";

/** Time that an upload is kept after a revision refers to it, so that it is not deleted before the revision is committed. */
const UPLOAD_EXTENSION_MS = 3_600_000;

export interface Change {
  deployment_id: string;
  patch: DeploymentPatch;
  /** Whether to create a revision even if the patch contains no field that requires one. */
  always_creates: boolean;
}

/**
 * Changes a deployment. A patch with secrets, secret references, resources or a source creates a revision, unless the deployment has no
 * source yet. The caller must have validated the secrets of the patch.
 *
 * @returns the revision, if one was created
 * @throws ApiError deployment_not_found, deployment_is_deleted, immutable_source_config, bad_source
 * @throws SealError when the existing secrets cannot be opened; nothing is written
 */
export async function changeDeployment(
  tx: Tx,
  seal: Seal,
  caller: Caller,
  { deployment_id, patch, always_creates }: Change,
): Promise<RevisionRow | undefined> {
  const deployment = await lockForChange(tx, caller, deployment_id);
  const latest = await latestRevision(tx, deployment);
  const source = sourceOf(deployment, latest, patch);
  const previous = JSON.parse(deployment.source_config) as SourceConfig;
  const config = changedSourceConfig(deployment.source as Source, previous, patch.source_config ?? {});
  const latest_config = latest && (JSON.parse(latest.source_revision_config) as SourceRevisionConfig);
  const revision_config = revisionConfigOf(source, patch.source_revision_config, latest_config);
  // A deployment without a source has no revision. Its changes are stored for the first revision.
  const lacksSource =
    !hasRevisionFields(patch.source_revision_config) && findMissingField(source, config, revision_config) !== undefined;
  const creates = always_creates || (needsRevision(patch) && !lacksSource);
  if (creates || latest) checkSource(source, config, revision_config);

  const owner = { table: "deployments" as const, ...deployment };
  const secrets = patch.secrets ?? (creates ? openSecrets(seal, owner, deployment.secrets) : undefined);
  const references = patch.secret_references && JSON.stringify(patch.secret_references);
  await updateDeployment(tx, deployment_id, {
    source_config: JSON.stringify(config),
    ...(patch.secrets && { secrets: sealSecrets(seal, owner, patch.secrets) }),
    ...(references && { secret_references: references }),
  });
  if (!creates || !secrets) return undefined;
  return addRevision(tx, seal, {
    deployment: { ...deployment, source_config: JSON.stringify(config) },
    source,
    source_revision_config: revision_config,
    secrets,
    secret_references: references ?? deployment.secret_references,
    created_by: caller.user_id,
  });
}

/** @throws ApiError deployment_not_found, deployment_is_deleted */
export async function lockForChange(tx: Tx, caller: Caller, deployment_id: string): Promise<DeploymentRow> {
  const deployment = await lockDeployment(tx, caller.tenant_id, deployment_id);
  if (!deployment) throw new ApiError("deployment_not_found", { deployment_id });
  if (deployment.status === "AWAITING_DELETE") throw new ApiError("deployment_is_deleted", { name: deployment.name });
  return deployment;
}

const latestRevision = async (tx: Tx, deployment: DeploymentRow): Promise<RevisionRow | undefined> =>
  deployment.latest_revision_id === null
    ? undefined
    : findRevision(tx, { ...deployment, revision_id: deployment.latest_revision_id });

function sourceOf(
  deployment: DeploymentRow,
  latest: RevisionRow | undefined,
  { revision_source }: DeploymentPatch,
): Source {
  if (revision_source !== undefined && deployment.source === "external_docker") {
    throw new ApiError("bad_source", {
      reason: "revision_source cannot be set for a deployment with source external_docker: omit the field.",
    });
  }
  return revision_source ?? ((latest?.source ?? deployment.source) as Source);
}

const needsRevision = ({ secrets, secret_references, source_config, source_revision_config }: DeploymentPatch) =>
  secrets !== undefined ||
  secret_references !== undefined ||
  source_config?.resource_spec !== undefined ||
  hasRevisionFields(source_revision_config);

interface NewRevisionInput {
  /** The deployment. The transaction must have locked its row. */
  deployment: DeploymentRow;
  source: Source;
  source_revision_config: SourceRevisionConfig;
  secrets: readonly { name: string; value: string }[];
  secret_references: string;
  created_by: string;
}

/**
 * Inserts a revision. While another revision is in progress, the new revision is queued and replaces an earlier queued revision.
 *
 * @throws ApiError bad_source when the tarball was not uploaded
 */
async function addRevision(tx: Tx, seal: Seal, input: NewRevisionInput): Promise<RevisionRow> {
  const { deployment, secrets, source_revision_config } = input;
  const { deployment_id, tenant_id } = deployment;
  await requireUpload(tx, deployment_id, source_revision_config.source_tarball_path);
  const is_queued = await hasRevisionInProgress(tx, deployment_id);
  if (is_queued) await skipQueued(tx, deployment_id);
  const revision_id = newId();
  const revision = await insertRevision(tx, {
    revision_id,
    deployment_id,
    tenant_id,
    seq: deployment.next_seq,
    status: is_queued ? "QUEUED" : "CREATING",
    source: input.source,
    source_config: deployment.source_config,
    source_revision_config: JSON.stringify(source_revision_config),
    secrets: sealSecrets(seal, { table: "revisions", tenant_id, revision_id }, secrets),
    secret_references: input.secret_references,
    created_by: input.created_by,
  });
  await setLatestRevision(tx, revision);
  return revision;
}

async function requireUpload(tx: Tx, deployment_id: string, object_path: string | null): Promise<void> {
  if (object_path === null) return;
  if ((await extendUpload(tx, { deployment_id, object_path }, UPLOAD_EXTENSION_MS)) > 0) return;
  throw new ApiError("bad_source", {
    reason: `This deployment has no uploaded tarball at source_tarball_path ${object_path}. Request an upload_url, and PUT the tarball to that URL. Then set source_tarball_path to the object_path that was returned together with the upload_url.`,
  });
}
