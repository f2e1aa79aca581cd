import type { Caller } from "../../platform/contract/caller.ts";
import { pollUntil } from "../../platform/database/poll-until.ts";
import type { VaultContext } from "../context.ts";
import type { WaitAnswer } from "../contract/flows.ts";
import { findFlow } from "../storage/flows.ts";
import type { FlowRow } from "../storage/schema.ts";
import { findToken } from "../storage/tokens.ts";
import { ensureFreshToken } from "./refresh.ts";

/** A callback that takes longer, besides the request to the provider, was interrupted by the end of its process. */
const MAX_CALLBACK_MS = 60_000;

/**
 * Waits until a flow that the caller started or owns has ended. The result is `not_found` for other flows, for failed, cancelled or
 * expired flows, and if the token is no longer usable, because the API has no other status for these cases.
 *
 * @param signal aborted when the client disconnects or the service stops, in which case the result is `timeout`
 */
export async function waitForFlow(
  context: VaultContext,
  caller: Pick<Caller, "tenant_id" | "user_id">,
  auth_id: string,
  { timeout_ms, signal }: { timeout_ms: number; signal: AbortSignal },
): Promise<WaitAnswer> {
  const { database, clock, settings } = context;
  const findEndedFlow = async () => {
    const flow = await findFlow(database.read, auth_id);
    if (!flow || !isInitiator(flow, caller)) return "not_found" as const;
    if (flow.outcome === "completed") return flow;
    const { claimed_at, expires_at } = flow;
    const ends_at = claimed_at === null ? expires_at : claimed_at + settings.provider_timeout_ms + MAX_CALLBACK_MS;
    const hasEnded = flow.outcome !== null || ends_at <= clock.now();
    return hasEnded ? ("not_found" as const) : undefined;
  };
  const flow = await pollUntil(findEndedFlow, {
    hints: database.hints,
    kind: "flow",
    isRelevant: (hint) => hint.auth_id === auth_id,
    poll_ms: settings.poll_ms,
    timeout_ms,
    abort: signal,
  });
  if (flow === undefined) return { status: "timeout", token: null };
  if (flow === "not_found" || flow.token_id === null) return NOT_FOUND;
  const token = await findToken(database.read, flow.tenant_id, flow.token_id);
  const state = token && (await ensureFreshToken(context, token));
  return state?.status === "fresh" ? { status: "completed", token: state.secret.access_token } : NOT_FOUND;
}

const NOT_FOUND = { status: "not_found", token: null } as const;

export const isInitiator = (flow: FlowRow, { tenant_id, user_id }: Pick<Caller, "tenant_id" | "user_id">): boolean =>
  flow.tenant_id === tenant_id && (flow.user_id === user_id || flow.started_by === user_id);

export function notifyFlowWaiters({ database }: Pick<VaultContext, "database">, auth_ids: readonly string[]): void {
  for (const auth_id of auth_ids) database.hints.emit({ kind: "flow", auth_id });
}
