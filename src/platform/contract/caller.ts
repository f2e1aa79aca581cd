/** The permissions of a key. docs/access.md describes them. */
export const SCOPES = ["agents", "experiments", "tokens", "providers", "deployments", "service", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * The scopes of keys without a list of scopes, and of JWTs. These scopes do not allow a caller to deploy and run code.
 */
export const DEFAULT_SCOPES: readonly Scope[] = ["agents", "experiments", "tokens"];

/** The role of a workspace member with a JWT: an `admin` has all scopes, a `member` the default ones and those of the claims. */
export const ROLES = ["member", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** The tenant owns the visible records. The contracts also call it workspace or organization. */
export interface Caller {
  tenant_id: string;
  user_id: string;
  scopes: readonly Scope[];
}

/** The workspace that exists in every database. */
export const DEFAULT_TENANT = "00000000-0000-0000-0000-000000000001";

export const mayUse = ({ scopes }: Pick<Caller, "scopes">, scope: Scope): boolean =>
  scopes.includes(scope) || scopes.includes("admin");
