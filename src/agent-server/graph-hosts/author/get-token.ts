/** What graphs import as `threadmill/graph`. */
import { ASK_FOR_TOKEN, type AskForToken, questionId, type TokenQuestion } from "./token-question.ts";

/** Which token a graph wants of the user that its run is for. */
export interface TokenWish {
  /** The `provider_id` under which the provider is registered. */
  provider: string;
  /** The token covers all of them. */
  scopes: readonly string[];
  /**
   * Whether it is this assistant that asks: then a token that is connected to it comes first, and one that the user grants now is
   * connected to it. False: the user's default token. Default: true.
   */
  agent_scoped?: boolean;
  /** This token of the user and no other. */
  token_id?: string;
  /** What the user reads when they have to go to the provider. */
  message?: string;
}

/** What a node or a tool is called with, as far as it matters here. */
export interface GraphConfig {
  configurable?: Record<string, unknown>;
}

/**
 * An access token of the user that the run is for. When there is none, the run is interrupted: the value of the interrupt is
 * `{message, auth_url, provider, scopes}`, and the user has to go to `auth_url`. Once the run is resumed, with any value, the node
 * runs again from its beginning, and gets the token here, or is interrupted again when there still is none.
 *
 * @param config what the node or tool was called with
 * @throws Error with the service's sentence: an unknown provider, a provider that renews no token right now
 */
export async function getToken(config: GraphConfig, wish: TokenWish): Promise<string> {
  const ask = config?.configurable?.[ASK_FOR_TOKEN] as AskForToken | undefined;
  if (typeof ask !== "function") throw new Error(NO_HOST);
  const { provider, scopes, agent_scoped = true, token_id, message = messageFor(provider) } = wish;
  if (typeof provider !== "string" || !isListOfTexts(scopes)) throw new Error(BAD_WISH);
  const answer = await ask({ provider, scopes: [...scopes], agent_scoped, token_id });
  if ("token" in answer) return answer.token;
  throw new TokenNeeded({ message, auth_url: answer.auth_url, provider, scopes });
}

const NO_HOST =
  "getToken works in a run that Threadmill executes: give it the config that the node or tool was called with.";
const BAD_WISH = "getToken needs the provider as a text and the scopes as a list of texts.";

const messageFor = (provider: string): string => `OAuth authentication required for provider '${provider}'.`;

const isListOfTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === "string");

/**
 * An interrupt, as every copy of LangGraph knows one: by its name and its mark, not by its class. So it does not matter which copy
 * the graph is built with. LangGraph's own `interrupt()` counts the questions of a node and takes their answers in order: once the
 * token is there this one is not asked any more, and its answer would be given to the node's next question.
 */
class TokenNeeded extends Error {
  override readonly name = "GraphInterrupt";
  readonly is_bubble_up = true;
  readonly interrupts: readonly { id: string; value: TokenQuestion }[];

  constructor(question: TokenQuestion) {
    super(`The user has to grant a token for "${question.provider}" first.`);
    this.interrupts = [{ id: questionId(question.auth_url), value: question }];
  }
}
