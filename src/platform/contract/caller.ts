/**
 * What a key may be used for. `agents`: assistants, threads, runs. `experiments`: datasets, uploads, feedback. `tokens`: the user's
 * own OAuth tokens. `providers`: where everybody's tokens come from and are sent to. `deployments`: the control plane, which runs
 * code. `service`: to name another user in `ls_user_id`. `admin`: all of these, tokens that belong to agents, and keys and workspaces
 * themselves.
 */
export const SCOPES = ["agents", "experiments", "tokens", "providers", "deployments", "service", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** What a key may be used for when nothing else is said, and what somebody with a JWT may do: no code of their own, no settings. */
export const DEFAULT_SCOPES: readonly Scope[] = ["agents", "experiments", "tokens"];

/** What a member of a workspace may do there with a JWT: an `admin` everything, a `member` what their claims and the defaults say. */
export const ROLES = ["member", "admin"] as const;
export type Role = (typeof ROLES)[number];

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
