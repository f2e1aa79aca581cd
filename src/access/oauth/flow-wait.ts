import type { Caller } from "../../platform/contract/caller.ts";
import type { VaultContext } from "../context.ts";
import type { WaitAnswer } from "../contract/flows.ts";
import { findFlow } from "../storage/flows.ts";
import { findToken } from "../storage/tokens.ts";
import { isInitiator } from "./flow-return.ts";
import { lookUntil } from "./poll-until.ts";
import { freshToken } from "./refresh.ts";

/**
 * Waits until a flow that the caller started has ended. What is not theirs, has failed or was cancelled is `not_found`: the API
 * has no word for failures, and none for others' flows.
 *
 * @param signal aborted when the caller is gone, or the service stops: then it is `timeout`
 */
export async function waitForFlow(
  context: VaultContext,
  caller: Pick<Caller, "tenant_id" | "user_id">,
  auth_id: string,
  { at_most_ms, signal }: { at_most_ms: number; signal: AbortSignal },
): Promise<WaitAnswer> {
  const { database, clock, settings } = context;
  const look = async () => {
    const flow = await findFlow(database.read, auth_id);
    if (!flow || !isInitiator(flow, caller)) return "nothing" as const;
    if (flow.outcome === "completed") return flow;
    const isOver = flow.outcome !== null || (flow.claimed_at === null && flow.expires_at <= clock.now());
    return isOver ? ("nothing" as const) : undefined;
  };
  const flow = await lookUntil(look, {
    hints: database.hints,
    kind: "flow",
    isMine: (hint) => hint.auth_id === auth_id,
    poll_ms: settings.poll_ms,
    at_most_ms,
    signal,
  });
  if (flow === undefined) return { status: "timeout", token: null };
  if (flow === "nothing" || flow.token_id === null) return NOT_FOUND;
  const token = await findToken(database.read, flow.tenant_id, flow.token_id);
  const found = token && (await freshToken(context, token));
  return found?.is === "fresh" ? { status: "completed", token: found.secret.access_token } : NOT_FOUND;
}

const NOT_FOUND = { status: "not_found", token: null } as const;
