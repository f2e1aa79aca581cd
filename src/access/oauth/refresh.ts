import { retryWhileUnavailable } from "../../platform/database/database-errors.ts";
import { pollUntil } from "../../platform/database/poll-until.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { VaultContext } from "../context.ts";
import { findProvider } from "../storage/providers.ts";
import type { ProviderRow, TokenRow } from "../storage/schema.ts";
import { insertTokenEvents } from "../storage/token-events.ts";
import { acquireRefreshLease, deleteTokenIfLeased, findToken, releaseRefreshLease } from "../storage/tokens.ts";
import { newTokenEvent } from "../tokens/token-events.ts";
import { openToken, sealToken, type TokenSecret } from "../tokens/token-secret.ts";
import { type Grant, refreshGrant } from "./oauth-client.ts";
import { describeFailure } from "./provider-errors.ts";
import { profileOf } from "./provider-profiles.ts";
import { revokeGrant } from "./revocation.ts";

export type TokenState =
  | { status: "fresh"; token: TokenRow; secret: TokenSecret }
  /** The token was deleted by its user, or because the provider permanently rejected the refresh. */
  | { status: "deleted" }
  /** The token has expired and cannot be refreshed. */
  | { status: "expired" }
  /** The token has expired, and the refresh failed temporarily. */
  | { status: "unavailable"; reason: string };

/** The refresh lease lasts this much longer than the provider timeout, so that its holder can store the result. */
const STORE_ALLOWANCE_MS = 5_000;

/** Time limit for storing the result while the database is unavailable. */
const MAX_STORE_MS = 30_000;

/** Maximum attempts of a caller: the first one, and one after each of two expired leases of other callers. */
const MAX_ATTEMPTS = 3;

/**
 * Returns the state of a token. A token that expires soon is refreshed first. Of all concurrent callers in all processes, one
 * refreshes and the others wait: a provider with rotating refresh tokens treats a second use of a refresh token as theft.
 */
export async function ensureFreshToken(context: VaultContext, requested: TokenRow): Promise<TokenState> {
  const { database, seal, settings } = context;
  const lease_ms = settings.provider_timeout_ms + STORE_ALLOWANCE_MS;
  let token = requested;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (!needsRefresh(context, token)) return fresh(context, token);
    if (openToken(seal, token).refresh_token === undefined) return unlessExpired(context, token, { status: "expired" });
    const holder = newId();
    // Before the lease: a change of the provider removes the secrets of its tokens, so an old token is never sent to a new URL.
    const provider = await findProvider(database.read, token.tenant_id, token.provider_id);
    const leased = await database.write((tx) => acquireRefreshLease(tx, token.token_id, holder, lease_ms));
    if (leased) return context.ongoing.add(refreshLeased(context, provider, leased, holder));
    const current = await waitForRefresh(context, token, lease_ms);
    if (current === "deleted") return { status: "deleted" };
    // The lease holder's refresh failed. Waiting callers do not repeat the request.
    if (current && current.refresh_holder === null && needsRefresh(context, current)) {
      return unlessExpired(context, current, { status: "unavailable", reason: "a concurrent refresh failed" });
    }
    token = current ?? token;
  }
  return unlessExpired(context, token, { status: "unavailable", reason: "a refresh is in progress" });
}

/** Waits until the refresh ends. Returns undefined after the timeout. */
async function waitForRefresh(
  { database, clock, settings }: VaultContext,
  { tenant_id, token_id }: TokenRow,
  timeout_ms: number,
): Promise<TokenRow | "deleted" | undefined> {
  const findReleased = async () => {
    const row = await findToken(database.read, tenant_id, token_id);
    if (!row) return "deleted" as const;
    return row.refresh_holder === null || (row.refresh_until ?? 0) <= clock.now() ? row : undefined;
  };
  return pollUntil(findReleased, {
    hints: database.hints,
    kind: "token",
    isRelevant: (hint) => hint.token_id === token_id,
    poll_ms: settings.poll_ms,
    timeout_ms,
  });
}

async function refreshLeased(
  context: VaultContext,
  provider: ProviderRow | undefined,
  leased: TokenRow,
  holder: string,
): Promise<TokenState> {
  const { database, seal } = context;
  const { token_id } = leased;
  try {
    // Another caller may have refreshed the token between the read and the lease.
    if (!needsRefresh(context, leased)) return await release(context, leased, holder, fresh(context, leased));
    const { refresh_token } = openToken(seal, leased);
    if (!provider || refresh_token === undefined) {
      return await release(context, leased, holder, unlessExpired(context, leased, { status: "expired" }));
    }
    return await requestRefresh(context, provider, leased, holder, refresh_token);
  } finally {
    database.hints.emit({ kind: "token", token_id });
  }
}

async function requestRefresh(
  context: VaultContext,
  provider: ProviderRow,
  leased: TokenRow,
  holder: string,
  refresh_token: string,
): Promise<TokenState> {
  const scopes = JSON.parse(leased.scopes) as string[];
  const grant = await refreshGrant(context, provider, refresh_token, scopes).catch(describeFailure);
  if (!("reason" in grant)) return storeGrant(context, provider, leased, holder, grant);
  const { tenant_id: workspace_id, provider_id, token_id } = leased;
  context.log.warn({ workspace_id, provider_id, token_id, ...grant }, "OAuth token refresh failed");
  const { reason } = grant;
  if (isPermanent(provider, reason)) return deleteRefusedToken(context, leased, holder, reason);
  return release(context, leased, holder, unlessExpired(context, leased, { status: "unavailable", reason }));
}

const isPermanent = (provider: ProviderRow, reason: string): boolean =>
  reason === "invalid_grant" || profileOf(provider).permanent_errors.includes(reason);

/** Stores the grant, unless the token was deleted or renewed in the meantime. */
async function storeGrant(
  context: VaultContext,
  provider: ProviderRow,
  leased: TokenRow,
  holder: string,
  { secret, scopes, expires_at, metadata }: Grant,
): Promise<TokenState> {
  const { database, seal } = context;
  const renewed = {
    secret: sealToken(seal, leased, secret),
    scopes: JSON.stringify(scopes),
    expires_at,
    metadata: JSON.stringify({ ...(JSON.parse(leased.metadata) as JsonObject), ...metadata }),
  };
  // With rotation, the provider accepts the old refresh token no longer: without the new one, the token would be lost.
  const deadline = performance.now() + MAX_STORE_MS;
  const stored = await retryWhileUnavailable(
    () => performance.now() > deadline,
    () => database.write((tx) => releaseRefreshLease(tx, leased.token_id, holder, renewed)),
  );
  if (stored) return fresh(context, stored);
  const state = await stateAfterChange(context, leased);
  // The token was deleted during the refresh, so the new token is not stored.
  if (state.status === "deleted") void context.ongoing.add(revokeGrant(context, provider, secret));
  return state;
}

/** The state of a token that another caller changed or deleted during the refresh. */
async function stateAfterChange(context: VaultContext, { tenant_id, token_id }: TokenRow): Promise<TokenState> {
  const current = await findToken(context.database.read, tenant_id, token_id);
  if (!current) return { status: "deleted" };
  return unlessExpired(context, current, {
    status: "unavailable",
    reason: "the token was changed, or another refresh was started, while this refresh was in progress",
  });
}

async function deleteRefusedToken(
  context: VaultContext,
  leased: TokenRow,
  holder: string,
  reason: string,
): Promise<TokenState> {
  const { database, log } = context;
  const { token_id } = leased;
  const deleted = await database.write(async (tx) => {
    const token = await deleteTokenIfLeased(tx, token_id, holder);
    if (token)
      await insertTokenEvents(tx, [newTokenEvent(token, { event_type: "token_deleted", source: "refresh", reason })]);
    return token;
  });
  if (!deleted) return stateAfterChange(context, leased);
  const { tenant_id: workspace_id, user_id, provider_id } = deleted;
  log.info({ workspace_id, user_id, provider_id, token_id, reason }, "OAuth token deleted");
  return { status: "deleted" };
}

async function release({ database }: VaultContext, { token_id }: TokenRow, holder: string, state: TokenState) {
  await database.write((tx) => releaseRefreshLease(tx, token_id, holder, {}));
  return state;
}

const fresh = ({ seal }: VaultContext, token: TokenRow): TokenState => ({
  status: "fresh",
  token,
  secret: openToken(seal, token),
});

const unlessExpired = (context: VaultContext, token: TokenRow, otherwise: TokenState): TokenState =>
  token.expires_at === null || token.expires_at > context.clock.now() ? fresh(context, token) : otherwise;

const needsRefresh = ({ clock, settings }: VaultContext, { expires_at }: TokenRow): boolean =>
  expires_at !== null && expires_at - settings.refresh_skew_ms <= clock.now();
