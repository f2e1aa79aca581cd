import { newId } from "../../platform/lib/ids.ts";
import type { TokenRow } from "../storage/schema.ts";
import type { NewTokenEvent } from "../storage/token-events.ts";

/**
 * Something that becomes of a token because somebody called this API.
 *
 * @param by who reads of it when the token is an agent's, which has no user of its own
 */
export const calledFor = (
  token: TokenRow,
  event_type: "token_created" | "token_deleted" | "needs_reconnect",
  {
    reason = null,
    by,
  }: {
    reason?: "user_deleted" | "provider_deleted" | "provider_changed" | "replaced" | "disconnected" | null;
    by: string;
  },
): NewTokenEvent => ({
  event_id: newId(),
  tenant_id: token.tenant_id,
  user_id: token.user_id ?? by,
  provider_id: token.provider_id,
  agent_id: token.agent_id,
  event_type,
  reason,
  source: "api",
  provider_account_label: token.provider_account_label,
  scopes: token.scopes,
  detail: null,
});
