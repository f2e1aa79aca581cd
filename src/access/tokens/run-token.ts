import type { Flows } from "../oauth/flows.ts";

/** Whose token a run's graph may have, and for which agent. */
export interface RunUser {
  tenant_id: string;
  user_id: string;
  /** Agents of the Auth Service are assistants here. */
  assistant_id: string;
}

/** Which token it wants. */
export interface RunTokenRequest {
  provider: string;
  scopes: string[];
  /** Whether the assistant asks, or the user alone. */
  agent_scoped: boolean;
  token_id?: string | undefined;
}

/**
 * A token for the graph of a run, or where to send the run's user for one. It is asked for as the user would do it; what their key
 * may be used for does not matter, since it is not the user who speaks here but the operator's graph.
 *
 * @param base_url our own address, as users' browsers reach it; undefined when it is not known
 * @throws ApiError as {@link Flows.authenticate}
 */
export async function tokenForRun(
  flows: Pick<Flows, "authenticate">,
  { tenant_id, user_id, assistant_id }: RunUser,
  { provider, scopes, agent_scoped, token_id }: RunTokenRequest,
  base_url: string | undefined,
): Promise<{ token: string } | { auth_url: string }> {
  const answer = await flows.authenticate(
    // Without the scope `service`, so that nobody else can be named.
    { tenant_id, user_id, scopes: [] },
    {
      provider,
      scopes,
      token_id,
      agent_id: agent_scoped ? assistant_id : undefined,
      user_id: undefined,
      ls_user_id: undefined,
      use_agent_builder_public_oauth: false,
      force_new: false,
      is_default: true,
    },
    base_url,
  );
  return answer.status === "completed" ? { token: answer.token as string } : { auth_url: answer.url as string };
}
