import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import type { Quirks } from "./quirks.ts";

/**
 * An answer of a token endpoint as RFC 6749 has it, and what else of it is worth keeping. The user's identity (`id_token`) is
 * left out: nothing here relies on it.
 */
export interface TokenResponse {
  response: Response;
  metadata: JsonObject;
  /** As the provider wrote it; the answer itself says `bearer`, since no other kind is asked for. */
  token_type: string | undefined;
}

export async function readTokenResponse(answer: Response, quirks: Quirks): Promise<TokenResponse> {
  const body = parseBody(await answer.text(), answer.headers.get("content-type"));
  if (!body) return { response: withStatus(answer.ok ? 502 : answer.status), metadata: {}, token_type: undefined };
  const own = quirks.nested_in === undefined ? undefined : body[quirks.nested_in];
  const token = isObject(own) && own.access_token !== undefined ? own : body;
  const isError = !answer.ok || (typeof body.error === "string" && token.access_token === undefined);
  if (isError) {
    // GitHub and Slack answer 200 whatever happened.
    return {
      response: withStatus(answer.ok ? 400 : answer.status, { error: body.error }),
      metadata: {},
      token_type: undefined,
    };
  }
  const metadata = Object.fromEntries(
    quirks.metadata_fields.filter((name) => body[name] !== undefined).map((name) => [name, body[name]]),
  );
  const { token_type } = token;
  return {
    response: withStatus(200, standardFields(token)),
    metadata,
    token_type: typeof token_type === "string" ? token_type : undefined,
  };
}

/** 95 years: more would not be a time any more. */
const LONGEST_S = 3e9;

/** What other forms providers write these in, or leave out, in the form of the RFC. */
function standardFields({ access_token, refresh_token, expires_in, scope }: JsonObject): JsonObject {
  const lifetime = Math.min(Number(expires_in ?? Number.NaN), LONGEST_S);
  return {
    access_token,
    token_type: "bearer",
    // Not a number, or 0, is how some say "does not expire".
    ...(lifetime > 0 && { expires_in: lifetime }),
    ...(typeof refresh_token === "string" && refresh_token !== "" && { refresh_token }),
    ...(typeof scope === "string" && { scope }),
    ...(Array.isArray(scope) && { scope: scope.join(" ") }),
  };
}

function parseBody(text: string, type: string | null): JsonObject | undefined {
  if (/^application\/x-www-form-urlencoded\b/i.test(type ?? "")) return Object.fromEntries(new URLSearchParams(text));
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

const withStatus = (status: number, body: JsonObject = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
