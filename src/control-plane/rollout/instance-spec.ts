import { type Seal, SealError } from "../../access/index.ts";
import type { Source, SourceConfig, SourceRevisionConfig } from "../contract/records.ts";
import { openSecrets } from "../deployments/secrets.ts";
import { findMissingField } from "../deployments/source-rules.ts";
import { type BuildSpec, type DeployDriver, DeployError, type InstanceSpec, type LogLine } from "../drivers/driver.ts";
import type { ReconcilerContext } from "../reconcile/reconciler-context.ts";
import type { Plan } from "../reconcile/steps.ts";
import type { DeploymentRow, InstanceRow, RevisionRow } from "../storage/schema.ts";
import { findUpload } from "../storage/uploads.ts";

/** Limits `resource_spec.min_scale`, so that a typo cannot overload the machine. */
const MAX_REPLICAS = 10;

const parsedConfig = ({ source_config }: RevisionRow) => JSON.parse(source_config) as SourceConfig;
export const parsedRevisionConfig = ({ source_revision_config }: RevisionRow) =>
  JSON.parse(source_revision_config) as SourceRevisionConfig;

export function planOf(revision: RevisionRow, driver: DeployDriver | undefined): Plan {
  const invalid = (reason: string): Plan => ({ kind: "invalid", reason });
  if (!driver)
    return invalid(
      parsedConfig(revision).listener_id === null
        ? `This service cannot run deployments with source "${revision.source}".`
        : `Listeners run images only, but the source is "${revision.source}": use "external_docker".`,
    );
  const missing = findMissingField(revision.source as Source, parsedConfig(revision), parsedRevisionConfig(revision));
  if (missing !== undefined) return invalid(missing);
  const { image_uri } = parsedRevisionConfig(revision);
  if (image_uri !== null) return { kind: "image", image: image_uri };
  return driver.build
    ? { kind: "build" }
    : invalid(`This service cannot build deployments with source "${revision.source}".`);
}

/** Number of instances: at least 1, because the router cannot start instances on demand. */
export const replicasOf = (revision: RevisionRow): number =>
  Math.min(MAX_REPLICAS, Math.max(1, parsedConfig(revision).resource_spec?.min_scale ?? 1));

type BuildContext = Pick<ReconcilerContext, "database" | "seal" | "uploads">;

/** @throws DeployError when the upload was deleted; SealError when the secrets cannot be decrypted */
export async function buildSpec(revision: RevisionRow, context: BuildContext): Promise<BuildSpec> {
  const { deployment_id, revision_id } = revision;
  const { install_command, build_command } = parsedConfig(revision);
  return {
    deployment_id,
    revision_id,
    source: await sourceOf(revision, context),
    config_path: parsedRevisionConfig(revision).langgraph_config_path ?? undefined,
    install_command: install_command ?? undefined,
    build_command: build_command ?? undefined,
    env: environmentOf(revision, context.seal),
  };
}

async function sourceOf(
  revision: RevisionRow,
  { database, uploads, seal }: BuildContext,
): Promise<BuildSpec["source"]> {
  const { source_tarball_path: object_path, repo_ref } = parsedRevisionConfig(revision);
  if (object_path === null) {
    const ssh_key = secretsOf(revision, seal)[SSH_KEY];
    const url = parsedConfig(revision).repo_url ?? "";
    return { kind: "git", url, ref: repo_ref ?? undefined, ssh_key };
  }
  const upload = await findUpload(database.read, { deployment_id: revision.deployment_id, object_path });
  if (!upload)
    throw new DeployError(
      `The uploaded source ${object_path} was deleted. Upload the source again, and create a revision with the new object_path.`,
    );
  return { kind: "tarball", file: uploads.fileOf(upload), sha256: upload.sha256 ?? "" };
}

interface InstanceSpecInput {
  deployment: Pick<DeploymentRow, "deployment_id" | "name">;
  revision: RevisionRow;
  instance: InstanceRow;
  database_password: string;
  default_env: Readonly<Record<string, string>>;
}

/** @throws DeployError when the revision has no artifact; SealError when the secrets cannot be decrypted */
export function instanceSpec(
  { deployment, revision, instance, database_password, default_env }: InstanceSpecInput,
  seal: Seal,
  log: (line: LogLine) => void,
): InstanceSpec {
  const { instance_id, deployment_id, revision_id, tenant_id, replica } = instance;
  if (revision.artifact === null)
    throw new DeployError("The revision has no build or image to run. Create a new revision.");
  const { resource_spec, listener_config } = parsedConfig(revision);
  return {
    instance_id,
    deployment_id,
    revision_id,
    tenant_id,
    namespace: listener_config?.k8s_namespace ?? undefined,
    replica,
    artifact: revision.artifact,
    config_path: parsedRevisionConfig(revision).langgraph_config_path ?? undefined,
    api_key: seal.open(instance.api_key, apiKeyAad(instance)),
    database_password,
    env: {
      ...default_env,
      THREADMILL_TRACING_PROJECT: deployment.name,
      ...environmentOf(revision, seal),
      ...deploymentVariables(deployment, instance),
    },
    resources: {
      cpu_limit: resource_spec?.cpu_limit ?? undefined,
      memory_limit_mb: resource_spec?.memory_limit_mb ?? undefined,
    },
    log,
  };
}

/** Returns undefined if the key that encrypts it was lost. The deployment works again when its secrets are replaced. */
export function apiKeyOf(instance: InstanceRow, { seal, log }: Pick<ReconcilerContext, "seal" | "log">) {
  try {
    return seal.open(instance.api_key, apiKeyAad(instance));
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    log.error({ error, instance_id: instance.instance_id }, "failed to decrypt the API key of an instance");
    return undefined;
  }
}

export const apiKeyAad = ({ tenant_id, instance_id }: Pick<InstanceRow, "tenant_id" | "instance_id">) => ({
  tenant_id,
  table: "instances",
  row_id: instance_id,
  column: "api_key",
});

export const databasePasswordAad = ({
  tenant_id,
  deployment_id,
}: Pick<InstanceRow, "tenant_id" | "deployment_id">) => ({
  tenant_id,
  table: "deployments",
  row_id: deployment_id,
  column: "database_password",
});

/** Decrypts the secrets of a revision. Throws if one cannot be decrypted, so that no instance starts without its secrets. */
const secretsOf = (revision: RevisionRow, seal: Seal): Record<string, string> =>
  Object.fromEntries(
    openSecrets(seal, { table: "revisions", ...revision }, revision.secrets).map(({ name, value }) => [name, value]),
  );

const SSH_KEY = "GIT_SSH_KEY";

/** Returns the secrets as variables, without the ssh key of a git repository, because only the fetch needs the key. */
function environmentOf(revision: RevisionRow, seal: Seal): Record<string, string> {
  const { [SSH_KEY]: ssh_key, ...others } = secretsOf(revision, seal);
  return revision.source === "github" || ssh_key === undefined ? others : { ...others, [SSH_KEY]: ssh_key };
}

/** Variables that identify the deployment to agents. They replace secrets with the same names. */
const deploymentVariables = (
  { deployment_id, name }: InstanceSpecInput["deployment"],
  { revision_id, rollout, tenant_id }: InstanceSpecInput["instance"],
) => ({
  LANGSMITH_DEPLOYMENT_NAME: name,
  LANGSMITH_HOST_PROJECT_ID: deployment_id,
  LANGSMITH_HOST_PROJECT_NAME: name,
  LANGSMITH_HOST_REVISION_ID: revision_id,
  LANGSMITH_TENANT_ID: tenant_id,
  // The instance executes no runs before this rollout is activated (instance-client.ts).
  THREADMILL_ROLLOUT: String(rollout),
});
