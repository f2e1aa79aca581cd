import { isObject, type JsonObject } from "../lib/json.ts";
import type { DeploymentRow, InstanceRow, RevisionRow } from "../storage/control/schema.ts";
import type { Seal } from "../vault/seal.ts";
import { type BuildOrder, type DeployDriver, DeployError, type InstanceOrder, type LogLine } from "./driver.ts";
import type { SourceFiles } from "./source-files.ts";
import type { Plan } from "./steps.ts";

/** More copies than this are no mistake of ours to carry out. */
const MOST_REPLICAS = 10;

const parse = (json: string): JsonObject => {
  const value: unknown = JSON.parse(json);
  return isObject(value) ? value : {};
};
const textOf = (object: JsonObject, field: string): string | undefined => {
  const value = object[field];
  return typeof value === "string" && value !== "" ? value : undefined;
};
const numberOf = (object: JsonObject, field: string): number | undefined => {
  const value = object[field];
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
};
const resourcesOf = ({ source_config }: RevisionRow): JsonObject => {
  const { resource_spec } = parse(source_config);
  return isObject(resource_spec) ? resource_spec : {};
};

/** How a revision becomes something that runs, or in a sentence why it cannot. */
export function planOf(revision: RevisionRow, driver: DeployDriver | undefined): Plan {
  const impossible = (because: string): Plan => ({ kind: "impossible", because });
  if (!driver) return impossible(`Nothing runs deployments of the source "${revision.source}" here.`);
  const asked = parse(revision.source_revision_config);
  if (revision.source === "github" || revision.source === "internal_source") {
    if (!driver.build) return impossible(`Nothing builds deployments of the source "${revision.source}" here.`);
    const isThere =
      revision.source === "github"
        ? textOf(parse(revision.source_config), "repo_url")
        : textOf(asked, "source_tarball_path");
    const missing =
      revision.source === "github" ? "source_config.repo_url" : "source_revision_config.source_tarball_path";
    return isThere ? { kind: "build" } : impossible(`There is no source to build: ${missing} is not set.`);
  }
  const image = textOf(asked, "image_uri");
  return image
    ? { kind: "image", image }
    : impossible("There is no image to run: source_revision_config.image_uri is not set.");
}

/** How many instances a revision has: `resource_spec.min_scale`, at least 1, as nothing here would wake up a sleeping one. */
export const replicasOf = (revision: RevisionRow): number =>
  Math.min(MOST_REPLICAS, Math.max(1, Math.floor(numberOf(resourcesOf(revision), "min_scale") ?? 1)));

/** @throws DeployError when the source is not there */
export async function buildOrder(revision: RevisionRow, seal: Seal, files: SourceFiles): Promise<BuildOrder> {
  const config = parse(revision.source_config);
  const { deployment_id, revision_id } = revision;
  return {
    deployment_id,
    revision_id,
    source: await sourceOf(revision, files),
    config_path: configPathOf(revision),
    install_command: textOf(config, "install_command"),
    build_command: textOf(config, "build_command"),
    env: secretsOf(revision, seal),
  };
}

async function sourceOf(revision: RevisionRow, files: SourceFiles): Promise<BuildOrder["source"]> {
  const asked = parse(revision.source_revision_config);
  if (revision.source === "github") {
    const url = textOf(parse(revision.source_config), "repo_url") as string;
    return { kind: "git", url, ref: textOf(asked, "repo_ref"), token: undefined };
  }
  const object_path = textOf(asked, "source_tarball_path") as string;
  const found = await files.find({ deployment_id: revision.deployment_id, object_path });
  if (!found) throw new DeployError(`The source ${object_path} has not arrived, or is gone: upload it again.`);
  return { kind: "tarball", ...found };
}

export interface InstanceParts {
  deployment: Pick<DeploymentRow, "deployment_id" | "name">;
  revision: RevisionRow;
  instance: InstanceRow;
}

export function instanceOrder(
  { deployment, revision, instance }: InstanceParts,
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
    config_path: configPathOf(revision),
    api_key: seal.open(instance.api_key, apiKeyPlace(instance)),
    env: { ...secretsOf(revision, seal), ...ownVariables(deployment, revision_id) },
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

const configPathOf = (revision: RevisionRow) => textOf(parse(revision.source_revision_config), "langgraph_config_path");

/** Fails closed: a deployment is never started without the secrets it was given. */
function secretsOf({ tenant_id, revision_id, secrets }: RevisionRow, seal: Seal): Record<string, string> {
  if (secrets === null) return {};
  const text = seal.open(secrets, { tenant_id, table: "revisions", row_id: revision_id, column: "secrets" });
  const pairs = JSON.parse(text) as { name: string; value: string }[];
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
}

/** What agents read to find out where they are. The names are reserved: no secret has one. */
const ownVariables = ({ deployment_id, name }: InstanceParts["deployment"], revision_id: string) => ({
  LANGSMITH_DEPLOYMENT_NAME: name,
  LANGSMITH_HOST_PROJECT_ID: deployment_id,
  LANGSMITH_HOST_PROJECT_NAME: name,
  LANGSMITH_HOST_REVISION_ID: revision_id,
});

/** What is asked for, doubled, where no limit is set: contract of the control plane, ResourceSpec. */
function limitsOf(revision: RevisionRow): InstanceOrder["resources"] {
  const spec = resourcesOf(revision);
  const twice = (field: string) => {
    const value = numberOf(spec, field);
    return value === undefined ? undefined : Math.round(value * 20) / 10;
  };
  return {
    cpu_limit: numberOf(spec, "cpu_limit") ?? twice("cpu"),
    memory_limit_mb: numberOf(spec, "memory_limit_mb") ?? twice("memory_mb"),
  };
}
