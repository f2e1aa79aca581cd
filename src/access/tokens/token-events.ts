import type { Tx } from "../../platform/database/database.ts";
import type { BackgroundService } from "../../platform/lib/background-service.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { VaultContext } from "../context.ts";
import { retention } from "../retention.ts";
import type { TokenRow } from "../storage/schema.ts";
import { deleteOldTokenEvents, insertTokenEvents, type NewTokenEvent } from "../storage/token-events.ts";
import { deleteTokens } from "../storage/tokens.ts";

/** The token or flow that an event is about. */
type EventSubject = Pick<NewTokenEvent, "tenant_id" | "user_id" | "provider_id" | "agent_id" | "scopes"> &
  Partial<Pick<NewTokenEvent, "provider_account_label">>;

type EventFields = Pick<NewTokenEvent, "event_type" | "source"> & Partial<Pick<NewTokenEvent, "reason" | "detail">>;

export const newTokenEvent = (
  { tenant_id, user_id, provider_id, agent_id, scopes, provider_account_label = null }: EventSubject,
  event: EventFields,
): NewTokenEvent => ({
  event_id: newId(),
  tenant_id,
  user_id,
  provider_id,
  agent_id,
  scopes,
  provider_account_label,
  reason: null,
  detail: null,
  ...event,
});

type ApiEventReason = "user_deleted" | "provider_deleted" | "provider_changed" | "replaced" | "disconnected";

/** @param caller_id the user who sees the event when the token belongs to an agent */
export const apiTokenEvent = (
  token: TokenRow,
  caller_id: string,
  event_type: "token_created" | "token_deleted" | "needs_reconnect",
  reason: ApiEventReason | null = null,
): NewTokenEvent =>
  newTokenEvent({ ...token, user_id: token.user_id ?? caller_id }, { event_type, source: "api", reason });

/** Deletes tokens, and stores an event for each. */
export async function deleteTokensWithEvents(
  tx: Tx,
  tokens: readonly TokenRow[],
  caller_id: string,
  reason: ApiEventReason,
): Promise<void> {
  const token_ids = tokens.map(({ token_id }) => token_id);
  await deleteTokens(tx, token_ids);
  const events = tokens.map((token) => apiTokenEvent(token, caller_id, "token_deleted", reason));
  await insertTokenEvents(tx, events);
}

export const tokenEventRetention = (
  context: Pick<VaultContext, "database" | "log" | "settings">,
  interval_ms?: number,
): BackgroundService =>
  retention(
    context,
    "oauth_token_events",
    (tx, limit) => deleteOldTokenEvents(tx, context.settings.token_event_retention_ms, limit),
    interval_ms,
  );
