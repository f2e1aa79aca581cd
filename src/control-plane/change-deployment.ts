import type { Seal } from "../access/index.ts";
import type { Caller } from "../platform/contract/caller.ts";
import type { Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { newId } from "../platform/lib/ids.ts";
import type { DeploymentPatch } from "./contract/deployments.ts";
import type { Source, SourceConfig, SourceRevisionConfig } from "./contract/records.ts";
import { openSecrets, sealSecrets } from "./secrets.ts";
import { changedSourceConfig, checkSource, revisionConfigOf, saysSomething, whyIncomplete } from "./source-rules.ts";
import { lockDeployment, setLatestRevision, updateDeployment } from "./storage/deployments.ts";
import { findRevision, insertRevision, isUnderWay, skipQueued } from "./storage/revisions.ts";
import type { DeploymentRow, RevisionRow } from "./storage/schema.ts";
import { keepUpload } from "./storage/uploads.ts";

/** A tarball stays for so long after somebody wants a revision of it, in which the revision comes to name it. */
export const KEEP_UPLOAD_MS = 3_600_000;

interface Change {
  deployment_id: string;
  patch: DeploymentPatch;
  /** Make a revision, also where nothing has changed. */
  always: boolean;
}

/**
 * Changes a deployment whose patch's secrets have been checked. A revision is made of secrets, references, resources or another
 * source, unless there is nothing yet that it could be made of.
 *
 * @returns the revision, if one was made
 * @throws ApiError deployment_not_found, deployment_is_deleted, immutable_source_config, bad_source
 * @throws SealError when the secrets that stay cannot be opened: nothing is written then
 */
export async function changeDeployment(
  tx: Tx,
  seal: Seal,
  caller: Caller,
  { deployment_id, patch, always }: Change,
): Promise<RevisionRow | undefined> {
  const deployment = await lockForChange(tx, caller, deployment_id);
  const latest = await latestRevision(tx, deployment);
  const source = sourceOf(deployment, latest, patch);
  const before = JSON.parse(deployment.source_config) as SourceConfig;
  const config = changedSourceConfig(deployment.source as Source, before, patch.source_config ?? {});
  const last = latest && (JSON.parse(latest.source_revision_config) as SourceRevisionConfig);
  const wanted = revisionConfigOf(source, patch.source_revision_config, last);
  const makes = (always || asksForRevision(patch)) && !isTooEarly(always, patch, source, config, wanted);
  if (makes || latest) checkSource(source, config, wanted);

  const of = { table: "deployments" as const, ...deployment };
  const secrets = patch.secrets ?? (makes ? openSecrets(seal, of, deployment.secrets) : undefined);
  const references = patch.secret_references && JSON.stringify(patch.secret_references);
  await updateDeployment(tx, deployment_id, {
    source_config: JSON.stringify(config),
    ...(patch.secrets && { secrets: sealSecrets(seal, of, patch.secrets) }),
    ...(references && { secret_references: references }),
  });
  if (!makes || !secrets) return undefined;
  return addRevision(tx, seal, {
    deployment: { ...deployment, source_config: JSON.stringify(config) },
    source,
    source_revision_config: wanted,
    secrets,
    secret_references: references ?? deployment.secret_references,
    created_by: caller.user_id,
  });
}

/**
 * @throws ApiError deployment_not_found; deployment_is_deleted
 */
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

/** What the revision comes from: as it says itself, or as the one before. */
function sourceOf(
  deployment: DeploymentRow,
  latest: RevisionRow | undefined,
  { revision_source }: DeploymentPatch,
): Source {
  if (revision_source !== undefined && deployment.source === "external_docker") {
    throw new ApiError("bad_source", {
      reason:
        "A deployment of external_docker takes no revision_source: its revisions are always images from elsewhere.",
    });
  }
  return revision_source ?? ((latest?.source ?? deployment.source) as Source);
}

const asksForRevision = ({ secrets, secret_references, source_config, source_revision_config }: DeploymentPatch) =>
  secrets !== undefined ||
  secret_references !== undefined ||
  source_config?.resource_spec !== undefined ||
  saysSomething(source_revision_config);

/** Before its first source a deployment only keeps what it is told. */
const isTooEarly = (
  always: boolean,
  patch: DeploymentPatch,
  source: Source,
  config: SourceConfig,
  wanted: SourceRevisionConfig,
): boolean =>
  !always && !saysSomething(patch.source_revision_config) && whyIncomplete(source, config, wanted) !== undefined;

interface RevisionOf {
  /** Locked. */
  deployment: DeploymentRow;
  source: Source;
  source_revision_config: SourceRevisionConfig;
  secrets: readonly { name: string; value: string }[];
  secret_references: string;
  created_by: string;
}

/**
 * A revision waits while another is under way, and takes the place of whichever waited before.
 *
 * @throws ApiError bad_source when its tarball has not arrived
 */
async function addRevision(tx: Tx, seal: Seal, of: RevisionOf): Promise<RevisionRow> {
  const { deployment, secrets, source_revision_config } = of;
  const { deployment_id, tenant_id } = deployment;
  await requireUpload(tx, deployment_id, source_revision_config.source_tarball_path);
  const waits = await isUnderWay(tx, deployment_id);
  if (waits) await skipQueued(tx, deployment_id);
  const revision_id = newId();
  const revision = await insertRevision(tx, {
    revision_id,
    deployment_id,
    tenant_id,
    seq: deployment.next_seq,
    status: waits ? "QUEUED" : "CREATING",
    source: of.source,
    source_config: deployment.source_config,
    source_revision_config: JSON.stringify(source_revision_config),
    secrets: sealSecrets(seal, { table: "revisions", tenant_id, revision_id }, secrets),
    secret_references: of.secret_references,
    created_by: of.created_by,
  });
  await setLatestRevision(tx, revision);
  return revision;
}

async function requireUpload(tx: Tx, deployment_id: string, object_path: string | null): Promise<void> {
  if (object_path === null) return;
  if ((await keepUpload(tx, { deployment_id, object_path }, KEEP_UPLOAD_MS)) > 0) return;
  throw new ApiError("bad_source", {
    reason: `Nothing was uploaded for this deployment at source_tarball_path ${object_path}: ask for an upload_url, PUT the tarball there, and name its object_path.`,
  });
}
