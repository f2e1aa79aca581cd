/** The permissions of a key. docs/access.md describes them. */
export const SCOPES = ["agents", "experiments", "tokens", "providers", "deployments", "service", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * The scopes of keys without a list of scopes, and the minimum scopes of JWTs. These scopes do not allow a caller to deploy and run code.
 */
export const DEFAULT_SCOPES: readonly Scope[] = ["agents", "experiments", "tokens"];

/** Roles of workspace members with a JWT. An `admin` has all scopes; a `member` has the default scopes and those of the JWT's claims. */
export const ROLES = ["member", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** A caller sees only the records of its tenant. The API contracts call a tenant a workspace or an organization. */
export interface Caller {
  tenant_id: string;
  user_id: string;
  scopes: readonly Scope[];
  /** The user that the project's authentication handler returned; undefined for keys and JWTs. */
  user?: AuthUser | undefined;
  /** What the project's authorization handlers grant to `user` in this request. `user` cannot access a resource without a grant. */
  grants?: Grants;
}

/** The user object that the project's authentication handler returned. It may have additional fields. */
export interface AuthUser {
  identity: string;
  display_name: string;
  is_authenticated: boolean;
  permissions: string[];
  [field: string]: unknown;
}

/** The header of the response to /ok by which an instance of a deployment reports that such a handler authenticates its users. */
export const CUSTOM_AUTH_HEADER = "x-threadmill-custom-auth";

export type Grants = Readonly<Partial<Record<AuthResource, Grant>>>;
export type AuthResource = "assistants" | "threads" | "crons" | "store";

export interface Grant {
  /** Undefined if all records of the workspace are accessible. */
  filter: MetadataFilter | undefined;
  /** Metadata that a handler adds to a record that the request creates without a body. */
  metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** A condition on records: their metadata contains these values, or they are assistants with these IDs. */
export type MetadataFilter =
  | { contains: Readonly<Record<string, unknown>> }
  | { all: MetadataFilter[] }
  | { any: MetadataFilter[] }
  | { assistant_ids: string[] };

/** The workspace that exists in every database. */
export const DEFAULT_TENANT = "00000000-0000-0000-0000-000000000001";

export const mayUse = ({ scopes }: Pick<Caller, "scopes">, scope: Scope): boolean =>
  scopes.includes(scope) || scopes.includes("admin");
