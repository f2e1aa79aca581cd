import { createHash } from "node:crypto";
import type { TokenAnswer, TokenRequest } from "../host.ts";

/**
 * The key of `configurable` with the function that requests tokens. LangGraph passes it to every node, tool and subgraph. Keys that start
 * with two underscores never reach metadata or events.
 */
export const REQUEST_TOKEN_KEY = "__threadmill_request_token";

export type RequestToken = (request: Omit<TokenRequest, "op">) => Promise<TokenAnswer>;

/** The value of the interrupt, with the keys that the client libraries expect. */
export interface TokenInterruptValue {
  message: string;
  /** The URL at which the user grants the token. */
  auth_url: string;
  provider: string;
  scopes: readonly string[];
}

/**
 * Returns the id of a token interrupt. It is derived from the value, so that such an interrupt can be identified. It has the
 * format of LangGraph's ids (32 hexadecimal digits), so that a resume value can name it. LangGraph itself never assigns this id,
 * so it passes a resume value for this id to no interrupt.
 */
export const tokenInterruptId = (auth_url: string): string =>
  createHash("sha256").update(`an OAuth token granted at ${auth_url}`).digest("hex").slice(0, 32);

/** Whether an interrupt requests a token. Such an interrupt needs a stored token; it ignores resume values. */
export function isTokenInterrupt({ id, value }: { id?: string; value?: unknown }): boolean {
  const { auth_url } = (value ?? {}) as Partial<TokenInterruptValue>;
  return typeof auth_url === "string" && id === tokenInterruptId(auth_url);
}
