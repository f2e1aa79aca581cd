import { randomBytes } from "node:crypto";
import type { Seal } from "../access/index.ts";
import type { Caller } from "../platform/contract/caller.ts";
import type { Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import { newId } from "../platform/lib/ids.ts";
import type { DeploymentCreate } from "./contract/deployments.ts";
import type { SourceConfig } from "./contract/records.ts";
import { sealSecrets } from "./secrets.ts";
import { slugOf } from "./slugs.ts";
import { checkSource, newSourceConfig, revisionConfigOf, saysSomething } from "./source-rules.ts";
import { findDeploymentByName, insertDeployment, type NewDeployment } from "./storage/deployments.ts";
import { findListener } from "./storage/listeners.ts";
import { insertRevision } from "./storage/revisions.ts";
import type { DeploymentRow } from "./storage/schema.ts";

/**
 * Makes a deployment, whose secrets have been checked, with its first revision. The command-line clients make it before they have
 * anything to run: of an internal source about which nothing is said it has none yet.
 *
 * @throws ApiError deployment_exists, bad_source
 */
export async function createDeployment(tx: Tx, seal: Seal, caller: Caller, given: DeploymentCreate): Promise<string> {
  const { source, secrets = [] } = given;
  const config = newSourceConfig(source, given.source_config);
  const first = revisionConfigOf(source, given.source_revision_config, undefined);
  const isEmpty = source.startsWith("internal_") && !saysSomething(given.source_revision_config);
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

/** An upload belongs to a deployment, so it cannot have been made before it. */
function refuseTarball(source_tarball_path: string | null): void {
  if (source_tarball_path === null) return;
  throw new ApiError("bad_source", {
    reason:
      "A tarball is uploaded for a deployment that is there: create it with an empty source_revision_config, upload, and PATCH it with the object_path.",
  });
}

/** A deployment that is bound to a listener runs in one of its namespaces. */
async function requireListener(tx: Tx, caller: Caller, { listener_id, listener_config }: SourceConfig): Promise<void> {
  if (listener_id === null) return;
  const listener = await findListener(tx, caller.tenant_id, listener_id);
  if (!listener) throw new ApiError("bad_source", { reason: `Listener ID ${listener_id} not found.` });
  const namespace = listener_config?.k8s_namespace ?? null;
  const { k8s_namespaces } = JSON.parse(listener.compute_config) as { k8s_namespaces: string[] | null };
  if (namespace === null || k8s_namespaces === null || k8s_namespaces.includes(namespace)) return;
  throw new ApiError("bad_source", {
    reason: `listener_config.k8s_namespace must be one of the listener's: ${k8s_namespaces.join(", ")}.`,
  });
}

/** Each after the first with 24 random bits. */
const TRIES = 5;

async function insertUnderFreeSlug(tx: Tx, deployment: Omit<NewDeployment, "slug">): Promise<DeploymentRow> {
  const plain = slugOf(deployment.name);
  for (let tried = 0; tried < TRIES; tried++) {
    const slug = tried === 0 ? plain : `${plain}-${randomBytes(3).toString("hex")}`;
    const row = await insertDeployment(tx, { ...deployment, slug });
    if (row) return row;
    const other = await findDeploymentByName(tx, deployment.tenant_id, deployment.name);
    if (other?.status === "AWAITING_DELETE") throw new ApiError("deployment_is_deleted", { name: other.name });
    if (other) throw new ApiError("deployment_exists", { name: other.name });
  }
  throw new ApiError("unavailable", { reason: "No path was found for this deployment. Try again." });
}
