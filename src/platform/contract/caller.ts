/**
 * The permissions of a key. `agents`: assistants, threads, runs. `experiments`: datasets, uploads, feedback. `tokens`:
 * the user's own OAuth tokens. `providers`: the OAuth providers of all users. `deployments`: the control plane, which
 * runs code. `service`: acting for another user with `ls_user_id`. `admin`: all of these, the tokens of agents, and the
 * management of keys and workspaces.
 */
export const SCOPES = ["agents", "experiments", "tokens", "providers", "deployments", "service", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** The scopes of a key that names none, and of a JWT. They permit no code of the caller and no settings. */
export const DEFAULT_SCOPES: readonly Scope[] = ["agents", "experiments", "tokens"];

/**
 * The role of a workspace member with a JWT: an `admin` has all scopes, a `member` those of the JWT's claims and the
 * defaults.
 */
export const ROLES = ["member", "admin"] as const;
export type Role = (typeof ROLES)[number];

/**
 * The authenticated caller. All visible records belong to the tenant, which the contracts also call workspace or
 * organization.
 */
export interface Caller {
  tenant_id: string;
  user_id: string;
  scopes: readonly Scope[];
}

/** The workspace that exists in every database. */
export const DEFAULT_TENANT = "00000000-0000-0000-0000-000000000001";

export const mayUse = ({ scopes }: Pick<Caller, "scopes">, scope: Scope): boolean =>
  scopes.includes(scope) || scopes.includes("admin");
