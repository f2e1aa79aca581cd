import type { Seal } from "../../access/index.ts";
import type { Source, SourceConfig, SourceRevisionConfig } from "../contract/records.ts";
import {
  type BuildOrder,
  type DeployDriver,
  DeployError,
  type InstanceOrder,
  type LogLine,
} from "../drivers/driver.ts";
import { openSecrets } from "../secrets.ts";
import { whyIncomplete } from "../source-rules.ts";
import type { DeploymentRow, InstanceRow, RevisionRow } from "../storage/schema.ts";
import { findUpload } from "../storage/uploads.ts";
import type { ReconcilerParts } from "./reconciler-context.ts";
import type { Plan } from "./steps.ts";

/** More copies than this are no mistake of ours to carry out. */
const MAX_REPLICAS = 10;

const configOf = ({ source_config }: RevisionRow) => JSON.parse(source_config) as SourceConfig;
export const madeOf = ({ source_revision_config }: RevisionRow) =>
  JSON.parse(source_revision_config) as SourceRevisionConfig;

/** How a revision becomes something that runs, or in a sentence why it cannot. */
export function planOf(revision: RevisionRow, driver: DeployDriver | undefined): Plan {
  const impossible = (because: string): Plan => ({ kind: "impossible", because });
  if (!driver) return impossible(`Nothing runs deployments of the source "${revision.source}" here.`);
  const incomplete = whyIncomplete(revision.source as Source, configOf(revision), madeOf(revision));
  if (incomplete !== undefined) return impossible(incomplete);
  const { image_uri } = madeOf(revision);
  if (image_uri !== null) return { kind: "image", image: image_uri };
  return driver.build
    ? { kind: "build" }
    : impossible(`Nothing builds deployments of the source "${revision.source}" here.`);
}

/** How many instances a revision has: `resource_spec.min_scale`, at least 1, as nothing here would wake up a sleeping one. */
export const replicasOf = (revision: RevisionRow): number =>
  Math.min(MAX_REPLICAS, Math.max(1, configOf(revision).resource_spec?.min_scale ?? 1));

export type Sources = Pick<ReconcilerParts, "database" | "seal" | "uploads">;

/** @throws DeployError when the source is not there */
export async function buildOrder(revision: RevisionRow, sources: Sources): Promise<BuildOrder> {
  const { deployment_id, revision_id } = revision;
  const { install_command, build_command } = configOf(revision);
  return {
    deployment_id,
    revision_id,
    source: await sourceOf(revision, sources),
    config_path: madeOf(revision).langgraph_config_path ?? undefined,
    install_command: install_command ?? undefined,
    build_command: build_command ?? undefined,
    env: environmentOf(revision, sources.seal),
  };
}

async function sourceOf(revision: RevisionRow, { database, uploads, seal }: Sources): Promise<BuildOrder["source"]> {
  const { source_tarball_path: object_path, repo_ref } = madeOf(revision);
  if (object_path === null) {
    const ssh_key = secretsOf(revision, seal)[SSH_KEY];
    const url = configOf(revision).repo_url ?? "";
    return { kind: "git", url, ref: repo_ref ?? undefined, token: undefined, ssh_key };
  }
  const upload = await findUpload(database.read, { deployment_id: revision.deployment_id, object_path });
  if (!upload) throw new DeployError(`The source ${object_path} is not kept any more: upload it again.`);
  return { kind: "tarball", file: uploads.fileOf(upload), sha256: upload.sha256 ?? "" };
}

export interface InstanceParts {
  deployment: Pick<DeploymentRow, "deployment_id" | "name">;
  revision: RevisionRow;
  instance: InstanceRow;
  database_password: string;
}

export function instanceOrder(
  { deployment, revision, instance, database_password }: InstanceParts,
  seal: Seal,
  log: (line: LogLine) => void,
): InstanceOrder {
  const { instance_id, deployment_id, revision_id, tenant_id, replica } = instance;
  if (revision.artifact === null) throw new DeployError("There is nothing to run: the revision has not been built.");
  return {
    instance_id,
    deployment_id,
    revision_id,
    tenant_id,
    replica,
    artifact: revision.artifact,
    config_path: madeOf(revision).langgraph_config_path ?? undefined,
    api_key: seal.open(instance.api_key, apiKeyPlace(instance)),
    database_password,
    env: { ...environmentOf(revision, seal), ...ownVariables(deployment, instance) },
    resources: limitsOf(revision),
    log,
  };
}

export const apiKeyPlace = ({ tenant_id, instance_id }: Pick<InstanceRow, "tenant_id" | "instance_id">) => ({
  tenant_id,
  table: "instances",
  row_id: instance_id,
  column: "api_key",
});

export const databasePasswordPlace = ({
  tenant_id,
  deployment_id,
}: Pick<InstanceRow, "tenant_id" | "deployment_id">) => ({
  tenant_id,
  table: "deployments",
  row_id: deployment_id,
  column: "database_password",
});

/** Fails closed: nothing is started without the secrets it was given. */
const secretsOf = (revision: RevisionRow, seal: Seal): Record<string, string> =>
  Object.fromEntries(
    openSecrets(seal, { table: "revisions", ...revision }, revision.secrets).map(({ name, value }) => [name, value]),
  );

/** The secret that reads a git repository over ssh. */
const SSH_KEY = "GIT_SSH_KEY";

/** The secrets, less what only the fetch of the source has a use for. */
function environmentOf(revision: RevisionRow, seal: Seal): Record<string, string> {
  const { [SSH_KEY]: ssh_key, ...others } = secretsOf(revision, seal);
  return revision.source === "github" || ssh_key === undefined ? others : { ...others, [SSH_KEY]: ssh_key };
}

/** What agents read to find out where they are. The names are reserved: no secret has one. */
const ownVariables = (
  { deployment_id, name }: InstanceParts["deployment"],
  { revision_id, rollout }: InstanceParts["instance"],
) => ({
  LANGSMITH_DEPLOYMENT_NAME: name,
  LANGSMITH_HOST_PROJECT_ID: deployment_id,
  LANGSMITH_HOST_PROJECT_NAME: name,
  LANGSMITH_HOST_REVISION_ID: revision_id,
  // It executes no runs before it is told to (activation.ts).
  THREADMILL_ROLLOUT: String(rollout),
});

function limitsOf(revision: RevisionRow): InstanceOrder["resources"] {
  const { resource_spec } = configOf(revision);
  return {
    cpu_limit: resource_spec?.cpu_limit ?? undefined,
    memory_limit_mb: resource_spec?.memory_limit_mb ?? undefined,
  };
}
