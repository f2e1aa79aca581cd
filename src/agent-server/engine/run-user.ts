import type { RunKwargs } from "../graph-hosts/host.ts";
import type { RunRow } from "../storage/schema.ts";

/** In whose name a run asks: what its record says, never what its graph does. */
export interface RunUser {
  tenant_id: string;
  user_id: string;
  assistant_id: string;
  /** What the caller who created the run may use. */
  scopes: readonly string[];
}

export function userOf({ tenant_id, assistant_id, kwargs }: RunRow): RunUser {
  const { configurable = {} } = (JSON.parse(kwargs) as RunKwargs).config;
  const permissions = configurable.langgraph_auth_permissions;
  const scopes = Array.isArray(permissions) ? permissions.map(String) : [];
  return { tenant_id, assistant_id, user_id: String(configurable.user_id), scopes };
}
