import type { Seal } from "../../access/index.ts";
import type { Caller } from "../../platform/contract/caller.ts";
import { isoOfMilliseconds } from "../../platform/lib/times.ts";
import type { Deployment, Revision, SourceConfig, SourceRevisionConfig } from "../contract/records.ts";
import type { ShownDeployment } from "../storage/deployments.ts";
import { canRedeploy } from "../storage/revisions.ts";
import type { RevisionRow } from "../storage/schema.ts";
import { openSecrets, visibleSecrets } from "./secrets.ts";

/** Value of source_revision_config if the deployment has no revision. */
const EMPTY_REVISION_CONFIG: SourceRevisionConfig = {
  repo_ref: null,
  repo_commit_sha: null,
  langgraph_config_path: null,
  image_uri: null,
  source_tarball_path: null,
};

/**
 * @param base_url public URL of this service
 * @throws SealError when the secrets cannot be opened
 */
export function toDeployment(row: ShownDeployment, caller: Caller, seal: Seal, base_url: string): Deployment {
  const source_config = JSON.parse(row.source_config) as SourceConfig;
  return {
    id: row.deployment_id,
    tenant_id: row.tenant_id,
    name: row.name,
    source: row.source as Deployment["source"],
    source_config: { ...source_config, custom_url: source_config.custom_url ?? `${base_url}/deployments/${row.slug}` },
    source_revision_config:
      row.source_revision_config === null ? EMPTY_REVISION_CONFIG : JSON.parse(row.source_revision_config),
    secrets: visibleSecrets(caller, openSecrets(seal, { table: "deployments", ...row }, row.secrets)),
    secret_references: JSON.parse(row.secret_references),
    status: row.status,
    latest_revision_id: row.latest_revision_id,
    active_revision_id: row.active_revision_id,
    image_version: row.image_version,
    created_at: isoOfMilliseconds(row.created_at),
    updated_at: isoOfMilliseconds(row.updated_at),
  };
}

export const toRevision = (row: RevisionRow): Revision => ({
  id: row.revision_id,
  status: row.status,
  status_message: row.status_message,
  source: row.source as Revision["source"],
  source_revision_config: JSON.parse(row.source_revision_config),
  can_redeploy: canRedeploy(row),
  created_at: isoOfMilliseconds(row.created_at),
  updated_at: isoOfMilliseconds(row.updated_at),
});
