import { createHash } from "node:crypto";
import type { TokenAnswer, TokenRequest } from "../host.ts";

/**
 * Where a host puts, in `configurable`, the function by which a run's graph asks for a token. LangGraph hands it on to every
 * node, tool and subgraph; keys that start with two underscores never reach metadata or events.
 */
export const ASK_FOR_TOKEN = "__threadmill_ask_for_token";

export type AskForToken = (wish: Omit<TokenRequest, "op">) => Promise<TokenAnswer>;

/** The value of the interrupt, for whoever shows it to the user. The four keys are those of the API's own client libraries. */
export interface TokenQuestion {
  message: string;
  /** Where the user has to go. */
  auth_url: string;
  provider: string;
  scopes: readonly string[];
}

/** An interrupt as LangGraph knows it. */
interface Interrupt {
  id?: string;
  value?: unknown;
}

/**
 * The id of a question for a token. It can be told from the value that it belongs to one, and looks like LangGraph's own ids (32
 * hexadecimal digits), so that an answer may be given by it. It is none of theirs, so LangGraph gives such an answer to nobody.
 */
export const questionId = (auth_url: string): string =>
  createHash("sha256").update(`a token by way of ${auth_url}`).digest("hex").slice(0, 32);

/** Whether an interrupt is a question for a token: what answers it is the token that is there then, not a value. */
export function isTokenQuestion({ id, value }: Interrupt): boolean {
  const { auth_url } = (value ?? {}) as Partial<TokenQuestion>;
  return typeof auth_url === "string" && id === questionId(auth_url);
}
