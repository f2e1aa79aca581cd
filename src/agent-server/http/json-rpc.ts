import type { Context } from "hono";
import type { Env } from "../../platform/http/route.ts";
import { isObject, JsonError, type JsonObject } from "../../platform/lib/json/json.ts";

/** Returns the JSON-RPC message in the body of a request, or the response to a body that contains none. */
export async function messageIn(context: Context<Env>): Promise<JsonObject | Response> {
  try {
    const body = await context.get("body_parser").parse(context.req);
    if (isObject(body)) return body;
    return refusal(400, -32600, "The body must be one JSON-RPC message. Batches are not supported.");
  } catch (error) {
    if (error instanceof JsonError) return refusal(400, -32700, `The body ${error.message}.`);
    throw error;
  }
}

export const refusal = (
  status: number,
  code: number,
  message: string,
  headers: Record<string, string> = {},
): Response => Response.json({ jsonrpc: "2.0", id: null, error: { code, message } }, { status, headers });
