import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { VaultContext } from "../context.ts";
import { findProvider } from "../storage/providers.ts";
import type { ProviderRow, TokenRow } from "../storage/schema.ts";
import { insertTokenEvents } from "../storage/token-events.ts";
import { deleteTokenIfHeld, endRefresh, findToken, holdForRefresh } from "../storage/tokens.ts";
import { openToken, sealToken, type TokenSecret } from "../tokens/token-secret.ts";
import { type Grant, refreshGrant } from "./client.ts";
import { failureOf } from "./failure.ts";
import { lookUntil } from "./poll-until.ts";
import { quirksOf } from "./quirks.ts";
import { revokeQuietly } from "./revocation.ts";

/** What a token is good for right now. */
export type Freshness =
  | { is: "fresh"; token: TokenRow; secret: TokenSecret }
  /** Deleted: by its user, or because the provider will not renew it. */
  | { is: "gone" }
  /** Its time is over, and nothing can renew it. */
  | { is: "expired" }
  /** Its time is over, and the provider does not answer as it should right now. */
  | { is: "unavailable"; reason: string };

/** The holder of a refresh has this long beyond the provider's time limit to write down what came of it. */
const WRITING_MS = 5_000;

/**
 * A token that can be given out: as it is, or refreshed when its time is nearly over. Of all who ask for one token at a time, in
 * any process, one refreshes it and the others wait, because a provider with rotating refresh tokens takes a second use of one for
 * theft.
 */
export async function freshToken(context: VaultContext, asked: TokenRow): Promise<Freshness> {
  const { database, seal, settings } = context;
  const hold_ms = settings.provider_timeout_ms + WRITING_MS;
  let token = asked;
  // Once for oneself, once for a holder who died; a third would only come of processes that die in turn.
  for (let turn = 0; turn < 3; turn++) {
    if (!isDue(context, token)) return fresh(context, token);
    if (openToken(seal, token).refresh_token === undefined) return asItIs(context, token, { is: "expired" });
    const holder = newId();
    const held = await database.write((tx) => holdForRefresh(tx, token.token_id, holder, hold_ms));
    if (held) return refreshHeld(context, held, holder);
    const after = await afterOthers(context, token, hold_ms);
    if (after === "gone") return { is: "gone" };
    // Whoever it was has ended without a new token: what failed for one need not be tried by all who waited.
    if (after && after.refresh_holder === null && isDue(context, after)) {
      return asItIs(context, after, { is: "unavailable", reason: "it could not be renewed" });
    }
    token = after ?? token;
  }
  return asItIs(context, token, { is: "unavailable", reason: "it is being renewed" });
}

/** Waits until nobody refreshes the token any more, or its holder's time is up. */
async function afterOthers(
  { database, clock, settings }: VaultContext,
  { tenant_id, token_id }: TokenRow,
  at_most_ms: number,
): Promise<TokenRow | "gone" | undefined> {
  const look = async () => {
    const row = await findToken(database.read, tenant_id, token_id);
    if (!row) return "gone" as const;
    return row.refresh_holder === null || (row.refresh_until ?? 0) <= clock.now() ? row : undefined;
  };
  return lookUntil(look, {
    hints: database.hints,
    kind: "token",
    isMine: (hint) => hint.token_id === token_id,
    poll_ms: settings.poll_ms,
    at_most_ms,
  });
}

async function refreshHeld(context: VaultContext, held: TokenRow, holder: string): Promise<Freshness> {
  const { database, seal } = context;
  const { token_id } = held;
  try {
    // Somebody else may have been quicker, between our look and our hold.
    if (!isDue(context, held)) return await letGo(context, held, holder, fresh(context, held));
    const { refresh_token } = openToken(seal, held);
    const provider = await findProvider(database.read, held.tenant_id, held.provider_id);
    if (!provider || refresh_token === undefined) {
      return await letGo(context, held, holder, asItIs(context, held, { is: "expired" }));
    }
    return await askProvider(context, provider, held, holder, refresh_token);
  } finally {
    database.hints.emit({ kind: "token", token_id });
  }
}

async function askProvider(
  context: VaultContext,
  provider: ProviderRow,
  held: TokenRow,
  holder: string,
  refresh_token: string,
): Promise<Freshness> {
  const scopes = JSON.parse(held.scopes) as string[];
  const grant = await refreshGrant(context, provider, refresh_token, scopes).catch(failureOf);
  if (!("reason" in grant)) return keep(context, provider, held, holder, grant);
  const { provider_id, token_id } = held;
  context.log.warn({ provider_id, token_id, ...grant }, "a token could not be refreshed");
  if (isFinal(provider, grant.reason)) return endToken(context, held, holder, grant.reason);
  return letGo(context, held, holder, asItIs(context, held, { is: "unavailable", reason: grant.reason }));
}

const isFinal = (provider: ProviderRow, reason: string): boolean =>
  reason === "invalid_grant" || quirksOf(provider).final_errors.includes(reason);

/** Stores what the provider gave, unless the token is gone or was granted anew meanwhile. */
async function keep(
  context: VaultContext,
  provider: ProviderRow,
  held: TokenRow,
  holder: string,
  { secret, scopes, expires_at, metadata }: Grant,
): Promise<Freshness> {
  const { database, seal } = context;
  const kept = await database.write((tx) =>
    endRefresh(tx, held.token_id, holder, {
      secret: sealToken(seal, held, secret),
      scopes: JSON.stringify(scopes),
      expires_at,
      metadata: JSON.stringify({ ...(JSON.parse(held.metadata) as JsonObject), ...metadata }),
    }),
  );
  if (kept) return fresh(context, kept);
  const now = await findToken(database.read, held.tenant_id, held.token_id);
  if (now) return asItIs(context, now, { is: "unavailable", reason: "it was renewed by somebody else" });
  // Its user has deleted it while the provider made a new one, which nobody would ever know of.
  void revokeQuietly(context, provider, secret);
  return { is: "gone" };
}

/** The provider will not renew it any more: the token goes, and its user can read why. */
async function endToken(
  { database }: VaultContext,
  { token_id }: TokenRow,
  holder: string,
  reason: string,
): Promise<Freshness> {
  await database.write(async (tx) => {
    const token = await deleteTokenIfHeld(tx, token_id, holder);
    if (!token) return;
    const { tenant_id, user_id, provider_id, agent_id, provider_account_label, scopes } = token;
    const whose = { tenant_id, user_id, provider_id, agent_id, provider_account_label, scopes };
    const what = { event_type: "token_deleted", reason, source: "refresh", detail: null };
    await insertTokenEvents(tx, [{ event_id: newId(), ...whose, ...what }]);
  });
  return { is: "gone" };
}

async function letGo({ database }: VaultContext, { token_id }: TokenRow, holder: string, end: Freshness) {
  await database.write((tx) => endRefresh(tx, token_id, holder, {}));
  return end;
}

const fresh = ({ seal }: VaultContext, token: TokenRow): Freshness => ({
  is: "fresh",
  token,
  secret: openToken(seal, token),
});

/** Gives it out while it is still good, however shortly. */
const asItIs = (context: VaultContext, token: TokenRow, otherwise: Freshness): Freshness =>
  token.expires_at === null || token.expires_at > context.clock.now() ? fresh(context, token) : otherwise;

const isDue = ({ clock, settings }: VaultContext, { expires_at }: TokenRow): boolean =>
  expires_at !== null && expires_at - settings.refresh_skew_ms <= clock.now();
