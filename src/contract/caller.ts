/**
 * What a key may be used for. `agents`: assistants, threads, runs. `experiments`: datasets, uploads, feedback. `deployments`: the
 * control plane. `tokens`: OAuth providers and the user's own tokens. `service`: to name another user in `ls_user_id`. `admin`:
 * all of these, and keys and workspaces themselves.
 */
export const SCOPES = ["agents", "experiments", "deployments", "tokens", "service", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** What a key may be used for when nothing else is said, and what somebody with a JWT may do. */
export const DEFAULT_SCOPES: readonly Scope[] = ["agents", "experiments", "deployments", "tokens"];

/** Who calls. Everything they can see belongs to their tenant, which the contracts also call workspace and organization. */
export interface Caller {
  tenant_id: string;
  user_id: string;
  scopes: readonly Scope[];
}

/** The workspace that exists from the start. */
export const DEFAULT_TENANT = "00000000-0000-0000-0000-000000000001";

export const mayUse = ({ scopes }: Pick<Caller, "scopes">, scope: Scope): boolean =>
  scopes.includes(scope) || scopes.includes("admin");
