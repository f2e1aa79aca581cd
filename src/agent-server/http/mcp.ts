import type { Context } from "hono";
import { clientAbortOf } from "../../platform/http/client-abort.ts";
import type { App } from "../../platform/http/route.ts";
import { isUuid, newId } from "../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import type { McpServerOptions } from "../protocols/mcp/server.ts";
import { messageIn, refusal } from "./json-rpc.ts";
import type { RunRoutesOptions } from "./runs.ts";
import { withHeadersOf } from "./trace-headers.ts";

export interface McpRoutesOptions extends RunRoutesOptions {
  mcp: Pick<McpServerOptions, "tools" | "calls" | "version">;
}

const SESSION = "mcp-session-id";

/**
 * Serves the MCP endpoint. The protocol has no state on the server: an `initialize` response contains a session id only because clients
 * number their requests per session, and a notification names a request that it cancels by this number.
 */
export function serveMcp(app: App, options: McpRoutesOptions): void {
  const withHeaders = withHeadersOf(options.configurable_headers);
  app.on(["GET", "POST", "DELETE"], ["/mcp", "/mcp/"], async (context) => {
    const { req } = context;
    const session_id = sessionOf(context);
    if (req.method === "DELETE" && session_id === undefined) return refusal(404, -32000, "There is no session to end.");
    if (req.method !== "POST")
      return refusal(405, -32000, "Only POST is supported: sessions cannot be ended, and streams cannot be resumed.", {
        allow: "POST",
      });
    const accept = req.header("accept") ?? "";
    if (!accept.includes("application/json") || !accept.includes("text/event-stream"))
      return refusal(400, -32000, "The Accept header must contain application/json and text/event-stream.");
    const body = await messageIn(context);
    if (body instanceof Response) return body;
    if (isCancel(body) && session_id !== undefined) {
      const { requestId, reason } = body.params;
      const text = typeof reason === "string" ? reason.slice(0, 1000) : null;
      await options.mcp.calls.cancel(context.get("caller"), session_id, requestId, text);
    }
    const isCall = body.method === "tools/call";
    if (isCall) context.get("requireOpenResponse")();
    // Imported with the first request: the SDK takes 50 ms and 6 MB.
    const { serveRequest } = await import("../protocols/mcp/server.ts");
    const client = clientAbortOf(context);
    const served = {
      caller: context.get("caller"),
      authorize: context.get("authorize"),
      withHeaders: <Body extends Parameters<typeof withHeaders>[0]>(body: Body) => withHeaders(body, context) as Body,
      session_id,
      isCall,
      body,
      http: new Request(req.url, { method: "POST", headers: req.raw.headers, signal: client.signal }),
      watchAccess: client.watchAccess,
    };
    const response = await serveRequest({ ...options, ...options.mcp }, served);
    if (body.method === "initialize" && response.ok) response.headers.set(SESSION, newId());
    return response;
  });
}

/** Ids that this service has not issued are ignored. */
function sessionOf({ req }: Context): string | undefined {
  const id = req.header(SESSION);
  return id !== undefined && isUuid(id) ? id : undefined;
}

interface Cancel extends JsonObject {
  params: { requestId: string | number; reason?: unknown };
}

function isCancel(body: JsonObject): body is Cancel {
  if (body.method !== "notifications/cancelled" || !isObject(body.params)) return false;
  return ["string", "number"].includes(typeof body.params.requestId);
}
