/** The module that graphs import as `threadmill/graph`. */
import { REQUEST_TOKEN_KEY, type RequestToken, type TokenInterruptValue, tokenInterruptId } from "./token-interrupt.ts";

/** The token that a graph requests for the user of its run. */
export interface GetTokenOptions {
  /** The `provider_id` under which the provider is registered. */
  provider: string;
  /** The token covers all of these scopes. */
  scopes: readonly string[];
  /**
   * True: prefers a token that is connected to this assistant, and connects a token that the user grants now to it. False: the user's
   * default token. Default: true.
   */
  agent_scoped?: boolean;
  /** Returns only this token of the user. */
  token_id?: string;
  /** The message for the user if a token must be granted. */
  message?: string;
}

/** The config of a node or tool, as far as it is used here. */
export interface GraphConfig {
  configurable?: Record<string, unknown>;
}

/**
 * Returns an access token of the run's user. If there is none, the run is interrupted with the value
 * `{message, auth_url, provider, scopes}`, and the user grants a token at `auth_url`. When the run is resumed, with any value, the
 * node starts again from its beginning. It then gets the token, or is interrupted again if there still is none.
 *
 * @param config the config of the node or tool
 * @throws Error with the message of the service: an unknown provider, or a provider that currently refreshes no token
 */
export async function getToken(config: GraphConfig, options: GetTokenOptions): Promise<string> {
  const request = config?.configurable?.[REQUEST_TOKEN_KEY] as RequestToken | undefined;
  if (typeof request !== "function")
    throw new Error("getToken requires a run of Threadmill: pass the config of the node or tool.");
  const { provider, scopes, agent_scoped = true, token_id, message = defaultMessage(provider) } = options;
  if (typeof provider !== "string" || !isStringList(scopes))
    throw new Error("getToken requires the provider as a string and the scopes as a list of strings.");
  const answer = await request({ provider, scopes: [...scopes], agent_scoped, token_id });
  if ("token" in answer) return answer.token;
  throw new TokenInterrupt({ message, auth_url: answer.auth_url, provider, scopes });
}

const defaultMessage = (provider: string): string => `OAuth authentication required for provider '${provider}'.`;

const isStringList = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === "string");

/**
 * An interrupt that all copies of LangGraph recognize, by its name and flag instead of its class. LangGraph's `interrupt()` is not
 * used: it counts the interrupts of a node and assigns resume values in order. Once the token exists, this interrupt no longer
 * occurs, and its resume value would go to the node's next interrupt.
 */
class TokenInterrupt extends Error {
  override readonly name = "GraphInterrupt";
  readonly is_bubble_up = true;
  readonly interrupts: readonly { id: string; value: TokenInterruptValue }[];

  constructor(value: TokenInterruptValue) {
    super(`The user must grant a token for "${value.provider}".`);
    this.interrupts = [{ id: tokenInterruptId(value.auth_url), value }];
  }
}
