import type { AadContext, Seal } from "../../access/index.ts";
import { type Caller, mayUse } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import type { Secret } from "../contract/records.ts";
import type { DeploymentRow, RevisionRow } from "../storage/schema.ts";

/** Names that secrets must not have: the service sets them, they would change the settings of an instance, or LangSmith reserves them. */
const RESERVED = new Set([
  "LANGCHAIN_TRACING_V2",
  "LANGSMITH_TRACING_V2",
  "LANGCHAIN_ENDPOINT",
  "LANGCHAIN_PROJECT",
  "LANGSMITH_PROJECT",
  "LANGSMITH_LANGGRAPH_GIT_REPO",
  "LANGSMITH_LANGGRAPH_GIT_REF",
  "LANGSMITH_LANGGRAPH_GIT_REF_SHA",
  "LANGGRAPH_GIT_REPO_PATH",
  "LANGCHAIN_API_KEY",
  "LANGSMITH_CONTROL_PLANE_API_KEY",
  "POSTGRES_URI",
  "POSTGRES_PASSWORD",
  "DATABASE_URI",
  "REDIS_URI",
  "LANGGRAPH_AUTH_TYPE",
  "LANGSMITH_AUTH_ENDPOINT",
  "LANGSMITH_TENANT_ID",
  "LANGSMITH_AUTH_VERIFY_TENANT_ID",
  "LANGSMITH_HOST_PROJECT_ID",
  "LANGSMITH_HOST_PROJECT_NAME",
  "LANGSMITH_HOST_REVISION_ID",
  "LANGSMITH_DEPLOYMENT_NAME",
  "LANGGRAPH_CLOUD_LICENSE_KEY",
  "LOG_JSON",
  "LOG_DICT_TRACEBACKS",
  "LANGCHAIN_CALLBACKS_BACKGROUND",
  "PATH",
  "PORT",
  "MOUNT_PREFIX",
]);
const RESERVED_PREFIXES = ["DD_TRACE_", "LSD_"];

export const isReserved = (name: string): boolean =>
  RESERVED.has(name) || RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix));

/** Valid names of environment variables. Like Kubernetes, also allows dots and dashes. */
const NAME = /^[A-Za-z_][\w.-]*$/;

/**
 * @throws ApiError reserved_secrets; bad_secrets for invalid or duplicate names. The errors contain secret names, never values
 */
export function checkSecrets(secrets: readonly Secret[]): void {
  const names = secrets.map(({ name }) => name);
  const reserved = names.filter(isReserved);
  if (reserved.length > 0) throw new ApiError("reserved_secrets", { names: listed(reserved) });
  const invalid = names.filter((name) => !NAME.test(name));
  if (invalid.length > 0)
    throw new ApiError("bad_secrets", {
      reason: `Each secret name must be a valid environment variable name. Invalid: ${listed(invalid)}.`,
    });
  const duplicates = names.filter((name, index) => names.indexOf(name) !== index);
  if (duplicates.length > 0)
    throw new ApiError("bad_secrets", {
      reason: `Send each secret name only once. Duplicates: ${listed(duplicates)}.`,
    });
}

const listed = (names: readonly string[]): string => [...new Set(names)].sort().join(", ");

/** The row that contains the secrets. The ciphertext is bound to this row and cannot be decrypted for another row. */
type SecretsOwner =
  | ({ table: "deployments" } & Pick<DeploymentRow, "tenant_id" | "deployment_id">)
  | ({ table: "revisions" } & Pick<RevisionRow, "tenant_id" | "revision_id">);

const aadOf = (owner: SecretsOwner): AadContext => ({
  tenant_id: owner.tenant_id,
  table: owner.table,
  row_id: owner.table === "deployments" ? owner.deployment_id : owner.revision_id,
  column: "secrets",
});

/** @returns the value of the column `secrets`; null if there are no secrets */
export const sealSecrets = (seal: Seal, owner: SecretsOwner, secrets: readonly Secret[]): string | null =>
  secrets.length === 0
    ? null
    : seal.seal(JSON.stringify(secrets.map(({ name, value }) => ({ name, value }))), aadOf(owner));

/** @throws SealError when the secrets were sealed for another row, or when the key is missing; never returns an empty list instead */
export const openSecrets = (seal: Seal, owner: SecretsOwner, sealed: string | null): Secret[] =>
  sealed === null ? [] : (JSON.parse(seal.open(sealed, aadOf(owner))) as Secret[]);

const MASK = "********";

/** Hides the values of secrets from callers who are not administrators. */
export const visibleSecrets = (caller: Caller, secrets: readonly Secret[]): Secret[] =>
  mayUse(caller, "admin") ? [...secrets] : secrets.map(({ name }) => ({ name, value: MASK }));
