import { ApiError } from "../../platform/errors.ts";
import type { SourceConfigInput, SourceRevisionConfigInput } from "../contract/deployments.ts";
import type { ResourceSpec, Source, SourceConfig, SourceRevisionConfig } from "../contract/records.ts";

/** Fields that cannot change after a deployment has been created. */
const IMMUTABLE = ["integration_id", "repo_url", "deployment_type", "listener_id", "listener_config"] as const;

type RevisionField = keyof SourceRevisionConfigInput;

/** Fields of source_revision_config that clients can set, by source. Other fields in requests are ignored. */
const FIELDS: Record<Source, readonly RevisionField[]> = {
  github: ["repo_ref", "langgraph_config_path"],
  internal_source: ["source_tarball_path", "langgraph_config_path"],
  internal_docker: ["image_uri"],
  external_docker: ["image_uri"],
};

/** Returns the config of a new deployment. custom_url is kept only for external_docker, whose traffic can bypass this service. */
export const newSourceConfig = (source: Source, given: SourceConfigInput): SourceConfig => ({
  integration_id: given.integration_id ?? null,
  repo_url: given.repo_url || null,
  deployment_type: given.deployment_type ?? null,
  build_on_push: given.build_on_push ?? null,
  custom_url: source === "external_docker" ? given.custom_url || null : null,
  resource_spec: given.resource_spec ? withDefaults(given.resource_spec) : null,
  listener_id: given.listener_id ?? null,
  listener_config: given.listener_config ? { k8s_namespace: given.listener_config.k8s_namespace ?? null } : null,
  install_command: given.install_command || null,
  build_command: given.build_command || null,
});

/**
 * Applies a change to a config. Missing fields keep their values; an empty string removes a command.
 *
 * @throws ApiError immutable_source_config
 */
export function changedSourceConfig(source: Source, before: SourceConfig, given: SourceConfigInput): SourceConfig {
  const changed = IMMUTABLE.filter((field) => given[field] !== undefined && !isSame(given[field], before[field]));
  if (changed.length > 0) throw new ApiError("immutable_source_config", { fields: changed.join(", ") });
  const now = newSourceConfig(source, given);
  return {
    ...before,
    build_on_push: now.build_on_push ?? before.build_on_push,
    custom_url: now.custom_url ?? before.custom_url,
    resource_spec: now.resource_spec ?? before.resource_spec,
    install_command: given.install_command === undefined ? before.install_command : now.install_command,
    build_command: given.build_command === undefined ? before.build_command : now.build_command,
  };
}

/** Whether a field is unchanged. In objects, a missing field is equal to null. */
function isSame(given: unknown, before: unknown): boolean {
  if (typeof given !== "object" || given === null) return given === before;
  const fields = (before ?? {}) as Record<string, unknown>;
  return Object.entries(given).every(([name, value]) => (value ?? null) === (fields[name] ?? null));
}

export const hasRevisionFields = (given: SourceRevisionConfigInput | undefined): boolean =>
  Object.values(given ?? {}).some((value) => value !== undefined && value !== "");

/** Returns the config of a new revision. Missing or empty fields keep the values of the previous revision. */
export function revisionConfigOf(
  source: Source,
  given: SourceRevisionConfigInput | undefined,
  before: SourceRevisionConfig | undefined,
): SourceRevisionConfig {
  const fieldOf = (field: RevisionField) =>
    FIELDS[source].includes(field) ? given?.[field] || before?.[field] || null : null;
  return {
    repo_ref: fieldOf("repo_ref"),
    repo_commit_sha: null,
    langgraph_config_path: fieldOf("langgraph_config_path"),
    image_uri: fieldOf("image_uri"),
    source_tarball_path: fieldOf("source_tarball_path"),
  };
}

/** A URL with a scheme that git supports, or `user@host:path`. Excludes values that git would interpret as an option or a remote helper. */
const GIT_URL = /^((https?|ssh|git|file):\/\/[^\s]+|[\w.-]+@[\w.-]+:[^\s:]\S*)$/i;
const IMAGE = /^[A-Za-z0-9][\w.\-/:@]*$/;
const GIT_REF = /^(?!-)(?!.*\.\.)[^\s~^:?*[\\]+$/;

/** @returns an error message; undefined when the source is complete */
export function findMissingField(
  source: Source,
  config: SourceConfig,
  revision: SourceRevisionConfig,
): string | undefined {
  if (source === "github" && !config.repo_url)
    return "source_config.repo_url is required: the URL of a git repository.";
  if (source === "internal_source" && !revision.source_tarball_path)
    return "source_revision_config.source_tarball_path is required: the object_path that POST .../upload-url returned.";
  if ((source === "internal_docker" || source === "external_docker") && !revision.image_uri)
    return "source_revision_config.image_uri is required: the image to run.";
  return undefined;
}

/** @throws ApiError bad_source with the name of the invalid field */
export function checkSource(source: Source, config: SourceConfig, revision: SourceRevisionConfig): void {
  const reason = findMissingField(source, config, revision) ?? findInvalidField(config, revision);
  if (reason !== undefined) throw new ApiError("bad_source", { reason });
}

function findInvalidField(
  { repo_url, build_on_push }: SourceConfig,
  revision: SourceRevisionConfig,
): string | undefined {
  const { repo_ref, langgraph_config_path, image_uri } = revision;
  if (repo_url && !GIT_URL.test(repo_url))
    return "source_config.repo_url must be the URL of a git repository, such as https://host/owner/repo.git.";
  if (repo_url && hasPassword(repo_url))
    return "source_config.repo_url must not contain credentials, because all users of the workspace can read the URL.";
  if (repo_ref && !GIT_REF.test(repo_ref))
    return `source_revision_config.repo_ref is ${JSON.stringify(repo_ref)}, but must be a branch such as main, a tag such as refs/tags/v1, or a full commit SHA.`;
  if (build_on_push && repo_ref?.startsWith("refs/tags/"))
    return "source_config.build_on_push requires a branch, not a tag: change source_revision_config.repo_ref.";
  if (image_uri && !IMAGE.test(image_uri))
    return `source_revision_config.image_uri is ${JSON.stringify(image_uri)}, but must be an image reference such as host/name:tag or host/name@sha256:<digest>.`;
  if (langgraph_config_path && !isWithin(langgraph_config_path))
    return `source_revision_config.langgraph_config_path is ${JSON.stringify(langgraph_config_path)}, but must be a relative path within the source.`;
  return undefined;
}

function hasPassword(url: string): boolean {
  const { protocol, username, password } = URL.parse(url) ?? {};
  return Boolean(password) || (Boolean(username) && /^https?:$/.test(protocol ?? ""));
}

const isWithin = (path: string): boolean => !/^([/\\]|[A-Za-z]:)/.test(path) && !path.split(/[/\\]/).includes("..");

/** Prefixes of the resource_spec fields of each component: the API server, the queue, Redis and the database. */
const PREFIXES = ["", "queue_", "redis_", "db_"] as const;

/**
 * Adds the default limits: twice the CPU, rounded to one decimal, and twice the memory (for Redis the same memory). The queue
 * defaults to the resources of the API.
 *
 * @throws ApiError bad_source when a limit or maximum is lower than the corresponding request or minimum
 */
function withDefaults(given: ResourceSpec): ResourceSpec {
  const spec: Record<string, unknown> = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  );
  for (const prefix of PREFIXES) {
    const [cpu, memory] = [spec[`${prefix}cpu`], spec[`${prefix}memory_mb`]];
    if (typeof cpu === "number") spec[`${prefix}cpu_limit`] ??= Math.round(cpu * 20) / 10;
    if (typeof memory === "number") spec[`${prefix}memory_limit_mb`] ??= prefix === "redis_" ? memory : memory * 2;
  }
  for (const name of ["min_scale", "max_scale", "cpu", "cpu_limit", "memory_mb", "memory_limit_mb"])
    if (spec[name] !== undefined) spec[`queue_${name}`] ??= spec[name];
  const pairs = PREFIXES.flatMap((prefix) => [
    [`${prefix}cpu`, `${prefix}cpu_limit`],
    [`${prefix}memory_mb`, `${prefix}memory_limit_mb`],
    [`${prefix}min_scale`, `${prefix}max_scale`],
  ]) as [string, string][];
  for (const [lower, upper] of pairs)
    if (Number(spec[lower]) > Number(spec[upper]))
      throw new ApiError("bad_source", { reason: `resource_spec.${upper} is lower than resource_spec.${lower}.` });
  return spec as ResourceSpec;
}
