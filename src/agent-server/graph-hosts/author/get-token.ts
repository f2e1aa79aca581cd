/** The module that graphs import as `threadmill/graph`. */
import { REQUEST_TOKEN_KEY, type RequestToken, type TokenInterruptValue, tokenInterruptId } from "./token-interrupt.ts";

export interface GetTokenOptions {
  /** The `provider_id` under which the provider is registered. */
  provider: string;
  /** Scopes that the token must have. */
  scopes: readonly string[];
  /**
   * True (default): a token that is connected to this assistant takes precedence, and a newly granted token is connected to it.
   * False: the user's default token is used.
   */
  agent_scoped?: boolean;
  /** ID of a specific token of the user; no other token is returned. */
  token_id?: string;
  /** Message that asks the user to grant access. */
  message?: string;
}

export interface GraphConfig {
  configurable?: Record<string, unknown>;
}

/**
 * Returns an access token of the run's user. Without a token, the run is interrupted with the value
 * `{message, auth_url, provider, scopes}`, and the user grants a token at `auth_url`. When the run is resumed, with any value, the
 * node starts again from its beginning and requests the token again.
 *
 * @param config the config of the node or tool
 * @throws Error outside of a run, for invalid options, or if the provider is unknown or cannot refresh the token
 */
export async function getToken(config: GraphConfig, options: GetTokenOptions): Promise<string> {
  const request = config?.configurable?.[REQUEST_TOKEN_KEY] as RequestToken | undefined;
  if (typeof request !== "function")
    throw new Error(
      "getToken works only in a Threadmill run. Pass the config to getToken. The config is the second argument of the node or tool.",
    );
  const { provider, scopes, agent_scoped = true, token_id, message = defaultMessage(provider) } = options;
  if (typeof provider !== "string" || !isStringList(scopes))
    throw new Error("getToken requires `provider` to be a string and `scopes` to be a list of strings.");
  const answer = await request({ provider, scopes: [...scopes], agent_scoped, token_id });
  if ("token" in answer) return answer.token;
  throw new TokenInterrupt({ message, auth_url: answer.auth_url, provider, scopes });
}

const defaultMessage = (provider: string): string => `OAuth authentication required for provider '${provider}'.`;

const isStringList = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === "string");

/**
 * An interrupt that all copies of LangGraph recognize by its name and flag. `interrupt()` is unsuitable: it counts a node's interrupts and
 * assigns resume values in order. Once the token exists, the resume value would go to the node's next interrupt.
 */
class TokenInterrupt extends Error {
  override readonly name = "GraphInterrupt";
  readonly is_bubble_up = true;
  readonly interrupts: readonly { id: string; value: TokenInterruptValue }[];

  constructor(value: TokenInterruptValue) {
    super(`The user must authorize access to "${value.provider}".`);
    this.interrupts = [{ id: tokenInterruptId(value.auth_url), value }];
  }
}
