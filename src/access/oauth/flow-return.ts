import { timingSafeEqual } from "node:crypto";
import type { Caller } from "../../platform/contract/caller.ts";
import type { Tx } from "../../platform/database/database.ts";
import { ApiError } from "../../platform/errors.ts";
import { newId } from "../../platform/lib/ids.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { VaultContext } from "../context.ts";
import { insertConnection } from "../storage/connections.ts";
import { claimFlow, endFlowIfClaimed, findFlow } from "../storage/flows.ts";
import { findProvider } from "../storage/providers.ts";
import type { FlowRow, ProviderRow, TokenRow } from "../storage/schema.ts";
import { insertTokenEvents } from "../storage/token-events.ts";
import { findToken, renewToken } from "../storage/tokens.ts";
import { addToken } from "../tokens/add-token.ts";
import { sealToken } from "../tokens/token-secret.ts";
import { exchangeCode, type Grant } from "./client.ts";
import { failureOf, wordOf } from "./failure.ts";
import { digestOf, verifierPlace } from "./flow-start.ts";
import { revokeQuietly } from "./revocation.ts";

/** What a user brings back from a provider. */
export interface Returned {
  /** Of the path: a provider has a callback of its own, so that nobody can pass off one's answer as another's. */
  provider_id: string;
  state?: string | undefined;
  code?: string | undefined;
  error?: string | undefined;
  error_description?: string | undefined;
  iss?: string | undefined;
  /** Of a GitHub App. */
  installation_id?: number | undefined;
}

/** How it ended: with a token, or not, and then why, in a word that holds nothing secret. */
export type FlowEnd = { status: "connected" } | { status: "failed"; reason: string };

/**
 * Takes a user back in who was sent to a provider, and stores what the provider grants.
 *
 * @param caller must be the one who was sent, where there is a caller; a browser that was redirected brings no key, and the state
 *   has to do
 * @throws ApiError flow_not_open when what is brought belongs to no open flow; the flow stays as it is
 */
export async function returnFromProvider(
  context: VaultContext,
  returned: Returned,
  caller?: Pick<Caller, "tenant_id" | "user_id">,
): Promise<FlowEnd> {
  const { database } = context;
  const named = await flowOfState(context, returned.state);
  const isTheirs = !caller || (named && isInitiator(named, caller));
  const isComplete = Boolean(returned.code || returned.error);
  if (!named || named.provider_id !== returned.provider_id || !isTheirs || !isComplete)
    throw new ApiError("flow_not_open");
  const flow = await database.write((tx) => claimFlow(tx, named.auth_id));
  if (!flow) throw new ApiError("flow_not_open");
  try {
    return await redeem(context, flow, returned);
  } finally {
    database.hints.emit({ kind: "flow", auth_id: flow.auth_id });
  }
}

/** Who started a flow, or whom it was started for. */
export const isInitiator = (flow: FlowRow, { tenant_id, user_id }: Pick<Caller, "tenant_id" | "user_id">): boolean =>
  flow.tenant_id === tenant_id && (flow.user_id === user_id || flow.started_by === user_id);

async function flowOfState({ database }: VaultContext, state = ""): Promise<FlowRow | undefined> {
  const auth_id = state.slice(0, Math.max(0, state.indexOf(".")));
  const flow = await findFlow(database.read, auth_id);
  const [known, given] = [flow?.state_digest ?? digestOf(""), digestOf(state)];
  return timingSafeEqual(Buffer.from(known), Buffer.from(given)) ? flow : undefined;
}

async function redeem(context: VaultContext, flow: FlowRow, returned: Returned): Promise<FlowEnd> {
  const { code, error, error_description, iss, installation_id } = returned;
  if (error || !code) return fail(context, flow, wordOf(error ?? ""), lineOf(error_description));
  const provider = await findProvider(context.database.read, flow.tenant_id, flow.provider_id);
  if (!provider) return fail(context, flow, "provider_deleted");
  const { redirect_uri } = flow;
  const verifier = flow.verifier === null ? undefined : context.seal.open(flow.verifier, verifierPlace(flow));
  const scopes = JSON.parse(flow.scopes) as string[];
  const back = { code, iss, redirect_uri, verifier, scopes };
  const grant = await exchangeCode(context, provider, back).catch(failureOf);
  if ("reason" in grant) {
    context.log.warn({ provider_id: flow.provider_id, auth_id: flow.auth_id, ...grant }, "a code gave no token");
    return fail(context, flow, grant.reason);
  }
  if (installation_id !== undefined) grant.metadata.installation_id = installation_id;
  return store(context, provider, flow, grant);
}

/** The token, the agent's connection, the end of the flow and the news of it: all at once, or nothing when it was cancelled. */
async function store(context: VaultContext, provider: ProviderRow, flow: FlowRow, grant: Grant): Promise<FlowEnd> {
  const { database } = context;
  const token_id = flow.token_id ?? newId();
  const secret = sealToken(context.seal, { tenant_id: flow.tenant_id, token_id }, grant.secret);
  const outcome = await database.write(async (tx) => {
    if (!(await endFlowIfClaimed(tx, flow.auth_id, { outcome: "completed", token_id }))) return "cancelled";
    const token = await (flow.token_id === null ? add : renew)(tx, flow, { token_id, secret, grant });
    // A token that was to be renewed has been deleted: it does not come back.
    if (!token) return "token_deleted";
    await connectAgent(tx, flow, token);
    const event_type = flow.token_id === null ? "token_created" : "token_renewed";
    await insertTokenEvents(tx, [eventOf(flow, { event_type, reason: null, detail: null }, token)]);
    return "connected";
  });
  if (outcome === "connected") return { status: "connected" };
  // Nobody would ever know of what the provider has just made.
  void revokeQuietly(context, provider, grant.secret);
  return { status: "failed", reason: outcome };
}

interface Granted {
  token_id: string;
  /** The grant's secret, sealed. */
  secret: string;
  grant: Grant;
}

function add(tx: Tx, flow: FlowRow, { token_id, secret, grant }: Granted): Promise<TokenRow> {
  const { tenant_id, user_id, provider_id, is_default } = flow;
  const token = {
    token_id,
    tenant_id,
    provider_id,
    user_id,
    provider_account_label: null,
    scopes: JSON.stringify(grant.scopes),
    secret,
    metadata: JSON.stringify(grant.metadata),
    expires_at: grant.expires_at,
  };
  return addToken(tx, token, is_default === 1);
}

async function renew(tx: Tx, flow: FlowRow, { token_id, secret, grant }: Granted): Promise<TokenRow | undefined> {
  const old = await findToken(tx, flow.tenant_id, token_id);
  if (!old) return undefined;
  return renewToken(tx, token_id, {
    secret,
    scopes: JSON.stringify(grant.scopes),
    expires_at: grant.expires_at,
    metadata: JSON.stringify({ ...(JSON.parse(old.metadata) as JsonObject), ...grant.metadata }),
  });
}

async function connectAgent(tx: Tx, { tenant_id, user_id, provider_id, agent_id }: FlowRow, { token_id }: TokenRow) {
  if (agent_id === null) return;
  await insertConnection(tx, {
    connection_id: newId(),
    tenant_id,
    agent_id,
    token_id,
    provider_id,
    created_by: user_id,
  });
}

/** Ends a flow without a token; its user can read why. */
async function fail(
  context: VaultContext,
  flow: FlowRow,
  reason: string,
  detail: string | null = null,
): Promise<FlowEnd> {
  await context.database.write(async (tx) => {
    const ended = await endFlowIfClaimed(tx, flow.auth_id, { outcome: "failed", token_id: null });
    if (ended) await insertTokenEvents(tx, [eventOf(flow, { event_type: "authorization_failed", reason, detail })]);
  });
  return { status: "failed", reason };
}

const eventOf = (
  { tenant_id, user_id, provider_id, agent_id, scopes }: FlowRow,
  what: { event_type: string; reason: string | null; detail: string | null },
  token?: TokenRow,
) => ({
  event_id: newId(),
  tenant_id,
  user_id,
  provider_id,
  agent_id,
  ...what,
  source: "flow",
  provider_account_label: token?.provider_account_label ?? null,
  scopes: token?.scopes ?? scopes,
});

/** What a provider says to people: at most a line of visible ASCII, so that it can be shown anywhere. */
const lineOf = (text: string | undefined): string | null =>
  text ? text.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, 300) : null;
