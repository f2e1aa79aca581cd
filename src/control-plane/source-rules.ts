import { ApiError } from "../platform/errors.ts";
import type { SourceConfigInput, SourceRevisionConfigInput } from "./contract/deployments.ts";
import type { Source, SourceConfig, SourceRevisionConfig } from "./contract/records.ts";
import { withDefaults } from "./resource-defaults.ts";

/** What may not change once a deployment is there. */
const IMMUTABLE = ["integration_id", "repo_url", "deployment_type", "listener_id", "listener_config"] as const;

type RevisionField = keyof SourceRevisionConfigInput;

/** What a revision of each source is told by; the rest means nothing to it and is null. */
const FIELDS: Record<Source, readonly RevisionField[]> = {
  github: ["repo_ref", "langgraph_config_path"],
  internal_source: ["source_tarball_path", "langgraph_config_path"],
  internal_docker: ["image_uri"],
  external_docker: ["image_uri"],
};

/** The config of a new deployment. Only where images come from elsewhere may traffic do so, too. */
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
 * A config with what is given in place of what was there; an empty command takes it away.
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

/** Fields of an object that are missing count as null. */
function isSame(given: unknown, before: unknown): boolean {
  if (typeof given !== "object" || given === null) return given === before;
  const of = (before ?? {}) as Record<string, unknown>;
  return Object.entries(given).every(([name, value]) => (value ?? null) === (of[name] ?? null));
}

/** Whether anything is said that a revision could be made of. */
export const saysSomething = (given: SourceRevisionConfigInput | undefined): boolean =>
  Object.values(given ?? {}).some((value) => value !== undefined && value !== "");

/** What a revision is made of: what is given, and where nothing is, what the one before was made of. */
export function revisionConfigOf(
  source: Source,
  given: SourceRevisionConfigInput | undefined,
  before: SourceRevisionConfig | undefined,
): SourceRevisionConfig {
  const of = (field: RevisionField) =>
    FIELDS[source].includes(field) ? given?.[field] || before?.[field] || null : null;
  return {
    repo_ref: of("repo_ref"),
    repo_commit_sha: null,
    langgraph_config_path: of("langgraph_config_path"),
    image_uri: of("image_uri"),
    source_tarball_path: of("source_tarball_path"),
  };
}

/** A URL with a scheme that git has, or `user@host:path`. Nothing that git would take for an option or a helper. */
const GIT_URL = /^((https?|ssh|git|file):\/\/[^\s]+|[\w.-]+@[\w.-]+:[^\s:]\S*)$/i;
const IMAGE = /^[A-Za-z0-9][\w.\-/:@]*$/;
const GIT_REF = /^(?!-)(?!.*\.\.)[^\s~^:?*[\\]+$/;

/** Why nothing can be made of this; undefined when it can. */
export function whyIncomplete(
  source: Source,
  config: SourceConfig,
  revision: SourceRevisionConfig,
): string | undefined {
  if (source === "github" && !config.repo_url) return "source_config.repo_url is needed: the URL of a git repository.";
  if (source === "internal_source" && !revision.source_tarball_path)
    return "source_revision_config.source_tarball_path is needed: the object_path of an upload (POST .../upload-url).";
  if ((source === "internal_docker" || source === "external_docker") && !revision.image_uri)
    return "source_revision_config.image_uri is needed: the image to run.";
  return undefined;
}

/**
 * @throws ApiError bad_source with a sentence that names the field
 */
export function checkSource(source: Source, config: SourceConfig, revision: SourceRevisionConfig): void {
  const reason = whyIncomplete(source, config, revision) ?? whyMalformed(config, revision);
  if (reason !== undefined) throw new ApiError("bad_source", { reason });
}

function whyMalformed({ repo_url, build_on_push }: SourceConfig, revision: SourceRevisionConfig): string | undefined {
  const { repo_ref, langgraph_config_path, image_uri } = revision;
  if (repo_url && !GIT_URL.test(repo_url))
    return "source_config.repo_url must be the URL of a git repository, such as https://host/owner/repo.git.";
  if (repo_url && hasPassword(repo_url))
    return "source_config.repo_url is shown to everybody in the workspace, so it must have no password in it.";
  if (repo_ref && !GIT_REF.test(repo_ref))
    return "source_revision_config.repo_ref must be a branch, or a tag as refs/tags/v1.";
  if (build_on_push && repo_ref?.startsWith("refs/tags/"))
    return "source_config.build_on_push goes with a branch, not with a tag: change source_revision_config.repo_ref.";
  if (image_uri && !IMAGE.test(image_uri))
    return "source_revision_config.image_uri must be an image, such as host/name:tag or host/name@sha256:....";
  if (langgraph_config_path && !isWithin(langgraph_config_path))
    return "source_revision_config.langgraph_config_path must be relative, and lead nowhere outside of the source.";
  return undefined;
}

function hasPassword(url: string): boolean {
  const { protocol, username, password } = URL.parse(url) ?? {};
  return Boolean(password) || (Boolean(username) && /^https?:$/.test(protocol ?? ""));
}

const isWithin = (path: string): boolean => !/^([/\\]|[A-Za-z]:)/.test(path) && !path.split(/[/\\]/).includes("..");
