import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { VaultContext } from "../context.ts";
import { DUMMY_DIGEST, matchesDigest } from "../keys/api-key-format.ts";
import { insertConnection } from "../storage/connections.ts";
import { claimFlow, endFlowIfClaimed, findFlow } from "../storage/flows.ts";
import { findProvider } from "../storage/providers.ts";
import type { FlowRow, ProviderRow, TokenRow } from "../storage/schema.ts";
import { insertTokenEvents } from "../storage/token-events.ts";
import { findToken, insertUserToken, renewToken } from "../storage/tokens.ts";
import { newTokenEvent } from "../tokens/token-events.ts";
import { sealToken } from "../tokens/token-secret.ts";
import { verifierAad } from "./flow-start.ts";
import { isInitiator, notifyFlowWaiters } from "./flow-wait.ts";
import { exchangeCode, type Grant } from "./oauth-client.ts";
import { describeFailure, safeErrorCode } from "./provider-errors.ts";
import { revokeGrant } from "./revocation.ts";

export interface CallbackParameters {
  /** From the path. Each provider has its own callback URL, which prevents mix-up attacks: responses of other providers are rejected. */
  provider_id: string;
  state?: string | undefined;
  code?: string | undefined;
  error?: string | undefined;
  error_description?: string | undefined;
  iss?: string | undefined;
  installation_id?: number | undefined;
}

/** `reason` is an error code or a short description of the failure, without secrets. */
export type FlowResult = { status: "connected" } | { status: "failed"; reason: string };

/**
 * Completes a flow: exchanges the code and stores the grant.
 *
 * @param caller must have started the flow or own its token; undefined for a redirected browser, which is authenticated by the state only
 * @throws ApiError flow_not_open when the parameters are incomplete or match no open flow; no flow is changed
 */
export async function handleCallback(
  context: VaultContext,
  callback: CallbackParameters,
  caller?: Pick<Caller, "tenant_id" | "user_id">,
): Promise<FlowResult> {
  const candidate = await flowOfState(context, callback.state);
  const isAllowed = !caller || (candidate && isInitiator(candidate, caller));
  const isComplete = Boolean(callback.code || callback.error);
  if (!candidate || candidate.provider_id !== callback.provider_id || !isAllowed || !isComplete)
    throw new ApiError("flow_not_open");
  const flow = await context.database.write((tx) => claimFlow(tx, candidate.auth_id));
  if (!flow) throw new ApiError("flow_not_open");
  try {
    return await completeFlow(context, flow, callback);
  } catch (error) {
    await failFlow(context, flow, "internal_error").catch(() => undefined);
    throw error;
  } finally {
    notifyFlowWaiters(context, [flow.auth_id]);
  }
}

async function flowOfState({ database }: VaultContext, state = ""): Promise<FlowRow | undefined> {
  const auth_id = state.slice(0, Math.max(0, state.indexOf(".")));
  const flow = await findFlow(database.read, auth_id);
  return matchesDigest(state, flow?.state_digest ?? DUMMY_DIGEST) ? flow : undefined;
}

async function completeFlow(context: VaultContext, flow: FlowRow, callback: CallbackParameters): Promise<FlowResult> {
  const { code, error, error_description, iss, installation_id } = callback;
  if (error || !code) return failFlow(context, flow, safeErrorCode(error ?? ""), printableLine(error_description));
  const provider = await findProvider(context.database.read, flow.tenant_id, flow.provider_id);
  if (!provider) return failFlow(context, flow, "provider_deleted");
  const { redirect_uri } = flow;
  const verifier = flow.verifier === null ? undefined : context.seal.open(flow.verifier, verifierAad(flow));
  const scopes = JSON.parse(flow.scopes) as string[];
  const authorization = { code, iss, redirect_uri, verifier, scopes };
  const grant = await exchangeCode(context, provider, authorization).catch(describeFailure);
  if ("reason" in grant) {
    const { tenant_id: workspace_id, provider_id, auth_id } = flow;
    context.log.warn({ workspace_id, provider_id, auth_id, ...grant }, "OAuth code exchange failed");
    return failFlow(context, flow, grant.reason);
  }
  if (installation_id !== undefined) grant.metadata.installation_id = installation_id;
  return storeGrant(context, provider, flow, grant);
}

/** Stores the token, the connection and the event, and ends the flow, in one transaction. Stores nothing if the flow was cancelled. */
async function storeGrant(
  context: VaultContext,
  provider: ProviderRow,
  flow: FlowRow,
  grant: Grant,
): Promise<FlowResult> {
  const token_id = flow.token_id ?? newId();
  const columns = {
    secret: sealToken(context.seal, { tenant_id: flow.tenant_id, token_id }, grant.secret),
    scopes: JSON.stringify(grant.scopes),
    expires_at: grant.expires_at,
  };
  const outcome = await context.database.write(async (tx) => {
    if (!(await endFlowIfClaimed(tx, flow.auth_id, { outcome: "completed", token_id }))) return "cancelled";
    const store = flow.token_id === null ? insertFlowToken : renewFlowToken;
    const token = await store(tx, flow, { token_id, ...columns }, grant.metadata);
    // A renewal does not recreate a token that was deleted in the meantime.
    if (!token) return "token_deleted";
    await connectAgent(tx, flow, token);
    const event_type = flow.token_id === null ? "token_created" : "token_renewed";
    const { provider_account_label, scopes } = token;
    const event = newTokenEvent({ ...flow, provider_account_label, scopes }, { event_type, source: "flow" });
    await insertTokenEvents(tx, [event]);
    return "connected";
  });
  if (outcome === "connected") return { status: "connected" };
  // The provider has issued a token that is not stored.
  void context.ongoing.add(revokeGrant(context, provider, grant.secret));
  return { status: "failed", reason: outcome };
}

type GrantColumns = Pick<TokenRow, "token_id" | "secret" | "scopes" | "expires_at">;

function insertFlowToken(tx: Tx, flow: FlowRow, columns: GrantColumns, metadata: JsonObject): Promise<TokenRow> {
  const { tenant_id, user_id, provider_id, is_default } = flow;
  const owner = { tenant_id, provider_id, user_id, provider_account_label: null };
  return insertUserToken(tx, { ...columns, ...owner, metadata: JSON.stringify(metadata) }, is_default === 1);
}

async function renewFlowToken(
  tx: Tx,
  flow: FlowRow,
  { token_id, ...columns }: GrantColumns,
  metadata: JsonObject,
): Promise<TokenRow | undefined> {
  const current = await findToken(tx, flow.tenant_id, token_id);
  if (!current) return undefined;
  const merged = { ...(JSON.parse(current.metadata) as JsonObject), ...metadata };
  return renewToken(tx, token_id, { ...columns, metadata: JSON.stringify(merged) });
}

async function connectAgent(tx: Tx, { tenant_id, user_id, provider_id, agent_id }: FlowRow, { token_id }: TokenRow) {
  if (agent_id === null) return;
  const connection_id = newId();
  await insertConnection(tx, { connection_id, tenant_id, agent_id, token_id, provider_id, created_by: user_id });
}

async function failFlow(
  context: VaultContext,
  flow: FlowRow,
  reason: string,
  detail: string | null = null,
): Promise<FlowResult> {
  await context.database.write(async (tx) => {
    if (!(await endFlowIfClaimed(tx, flow.auth_id, { outcome: "failed", token_id: null }))) return;
    const event = newTokenEvent(flow, { event_type: "authorization_failed", source: "flow", reason, detail });
    await insertTokenEvents(tx, [event]);
  });
  return { status: "failed", reason };
}

/** The text comes from the provider and may contain control characters. */
const printableLine = (text: string | undefined): string | null =>
  text ? text.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, 300) : null;
