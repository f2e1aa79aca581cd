import { type Caller, mayUse } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import type { JsonObject } from "../../platform/lib/json/json.ts";
import type { VaultContext } from "../context.ts";
import type { AuthenticateAnswer, AuthenticateRequest } from "../contract/flows.ts";
import { listConnections } from "../storage/connections.ts";
import { findProvider } from "../storage/providers.ts";
import type { ProviderRow, TokenRow } from "../storage/schema.ts";
import { findToken, listTokens } from "../storage/tokens.ts";
import { startFlow } from "./flow-start.ts";
import { freshToken } from "./refresh.ts";

/** What the answer turns on, once it is known whom it is about. */
interface Question {
  caller: Caller;
  /** Whose token. */
  user_id: string;
  provider: ProviderRow;
  body: AuthenticateRequest;
  base_url: string | undefined;
}

type Given = AuthenticateAnswer & { status: "completed" };

/** Why there is no token to give out, and the one that a flow is to renew. */
interface Missing {
  status: "pending" | "connection_required" | "token_expired";
  renews?: TokenRow | undefined;
}

/**
 * A token for a user at a provider, or where to send the user to get one.
 *
 * @param base_url our own address, as users' browsers reach it; undefined when it is not known
 * @throws ApiError oauth_provider_not_found, oauth_token_not_found; provider_unavailable when the token's time is over and the provider does
 *   not renew it right now; no_public_url, redirect_uri_not_allowed
 */
export async function authenticate(
  context: VaultContext,
  caller: Caller,
  body: AuthenticateRequest,
  base_url: string | undefined,
): Promise<AuthenticateAnswer> {
  const provider = await findProvider(context.database.read, caller.tenant_id, body.provider);
  if (!provider) throw new ApiError("oauth_provider_not_found", { provider_id: body.provider });
  const question = { caller, user_id: subjectOf(caller, body), provider, body, base_url };
  const found = body.force_new ? { status: "pending" as const } : await findUsable(context, question);
  return found.status === "completed" ? found : sendAway(context, question, found);
}

/** Only a service may name somebody else; from anybody else the names are ignored. */
const subjectOf = (caller: Caller, { ls_user_id, user_id }: AuthenticateRequest): string =>
  mayUse(caller, "service") ? (ls_user_id ?? user_id ?? caller.user_id) : caller.user_id;

/** In order: the token that is named, one that the agent is connected to, the user's default. */
async function findUsable(context: VaultContext, question: Question): Promise<Given | Missing> {
  const { database } = context;
  const { caller, user_id, provider, body } = question;
  const { provider_id } = provider;
  const { tenant_id } = caller;
  if (body.token_id !== undefined) {
    const token = await findToken(database.read, tenant_id, body.token_id);
    if (token?.user_id !== user_id || token.provider_id !== provider_id) throw new ApiError("oauth_token_not_found");
    return give(context, question, token, "token_expired");
  }
  let connected: Missing | undefined;
  for (const token of await connectedTokens(context, question)) {
    const answer = await give(context, question, token, "pending");
    if (answer.status === "completed") return answer;
    connected ??= answer;
  }
  const tokens = await listTokens(database.read, { tenant_id, user_id, provider_id });
  const standard = tokens.find((token) => token.is_default === 1);
  const answer = standard && (await give(context, question, standard, "pending"));
  if (answer?.status === "completed") return answer;
  const dead = connected ?? answer;
  if (dead) return dead;
  const isThere = tokens.some((token) => covers(token, body.scopes));
  return { status: isThere && body.agent_id !== undefined ? "connection_required" : "pending" };
}

/** The user's own tokens first, then the agent's, which serve all of its users; the newest connection first. */
async function connectedTokens({ database }: VaultContext, question: Question): Promise<TokenRow[]> {
  const { caller, user_id, provider, body } = question;
  if (body.agent_id === undefined) return [];
  const { tenant_id } = caller;
  const whose = { tenant_id, agent_id: body.agent_id, user_id };
  const connections = await listConnections(database.read, whose, provider.provider_id);
  const tokens = await Promise.all(connections.map(({ token_id }) => findToken(database.read, tenant_id, token_id)));
  const found = tokens.filter((token) => token !== undefined);
  return [...found.filter((token) => token.user_id === user_id), ...found.filter((token) => token.user_id !== user_id)];
}

/** @param ifDead what it is when its time is over and nothing renews it */
async function give(
  context: VaultContext,
  { user_id, provider, body }: Question,
  token: TokenRow,
  ifDead: Missing["status"],
): Promise<Given | Missing> {
  const renews = token.user_id === user_id ? token : undefined;
  if (!covers(token, body.scopes)) return { status: "pending", renews };
  const found = await freshToken(context, token);
  switch (found.is) {
    case "fresh":
      return {
        status: "completed",
        url: null,
        auth_id: null,
        token: found.secret.access_token,
        user_id,
        metadata: JSON.parse(found.token.metadata) as JsonObject,
      };
    case "gone":
      return { status: "pending" };
    case "expired":
      return { status: ifDead, renews };
    case "unavailable":
      throw new ApiError("provider_unavailable", { provider_id: provider.provider_id, reason: found.reason });
  }
}

const covers = (token: TokenRow, scopes: readonly string[]): boolean => {
  const granted = new Set(JSON.parse(token.scopes) as string[]);
  return scopes.every((scope) => granted.has(scope));
};

async function sendAway(context: VaultContext, question: Question, missing: Missing): Promise<AuthenticateAnswer> {
  const { caller, user_id, provider, body, base_url } = question;
  const { url, auth_id } = await startFlow(context, provider, {
    tenant_id: caller.tenant_id,
    user_id,
    started_by: caller.user_id,
    agent_id: body.agent_id,
    scopes: body.scopes,
    is_default: body.is_default,
    renews: missing.renews,
    base_url,
  });
  return { status: missing.status, url, auth_id, token: null, user_id, metadata: null };
}
