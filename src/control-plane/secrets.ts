import type { Place, Seal } from "../access/index.ts";
import { type Caller, mayUse } from "../platform/contract/caller.ts";
import { ApiError } from "../platform/errors.ts";
import type { Secret } from "./contract/records.ts";
import type { DeploymentRow, RevisionRow } from "./storage/schema.ts";

/** What the service itself sets, or what would change how an instance finds its database. The list is the contract's, section 3.3. */
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

/** What an environment can have and every shell can name; dots and dashes are Kubernetes's. */
const NAME = /^[A-Za-z_][\w.-]*$/;

/**
 * @throws ApiError reserved_secrets; bad_secrets for names that no environment has, or that are there twice. It tells names, never
 *   values
 */
export function checkSecrets(secrets: readonly Secret[]): void {
  const names = secrets.map(({ name }) => name);
  const reserved = names.filter(isReserved);
  if (reserved.length > 0) throw new ApiError("reserved_secrets", { names: listed(reserved) });
  const odd = names.filter((name) => !NAME.test(name));
  if (odd.length > 0)
    throw new ApiError("bad_secrets", { reason: `These are no names of environment variables: ${listed(odd)}.` });
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  if (twice.length > 0)
    throw new ApiError("bad_secrets", { reason: `These secrets are named more than once: ${listed(twice)}.` });
}

const listed = (names: readonly string[]): string => [...new Set(names)].sort().join(", ");

/** Whose secrets: each row has a copy of its own, which opens nowhere else. */
export type SecretsOf =
  | ({ table: "deployments" } & Pick<DeploymentRow, "tenant_id" | "deployment_id">)
  | ({ table: "revisions" } & Pick<RevisionRow, "tenant_id" | "revision_id">);

const placeOf = (of: SecretsOf): Place => ({
  tenant_id: of.tenant_id,
  table: of.table,
  row_id: of.table === "deployments" ? of.deployment_id : of.revision_id,
  column: "secrets",
});

/** The text for the column `secrets`; null for none. */
export const sealSecrets = (seal: Seal, of: SecretsOf, secrets: readonly Secret[]): string | null =>
  secrets.length === 0
    ? null
    : seal.seal(JSON.stringify(secrets.map(({ name, value }) => ({ name, value }))), placeOf(of));

/** @throws SealError when they were not sealed for this row, or with a key that is gone: never an empty list instead */
export const openSecrets = (seal: Seal, of: SecretsOf, sealed: string | null): Secret[] =>
  sealed === null ? [] : (JSON.parse(seal.open(sealed, placeOf(of))) as Secret[]);

const MASK = "********";

/** Their values are for administrators alone. */
export const shownTo = (caller: Caller, secrets: readonly Secret[]): Secret[] =>
  mayUse(caller, "admin") ? [...secrets] : secrets.map(({ name }) => ({ name, value: MASK }));
