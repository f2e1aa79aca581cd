import type { Scope } from "../../platform/contract/caller.ts";

/**
 * Paths that need no authentication: health checks, version and features, web app pages, shared resources and feedback tokens (token in
 * the path), OAuth callbacks (single-use state) and uploads (single-use token in the URL).
 */
const PUBLIC_PATHS: readonly (readonly [methods: readonly string[], path: RegExp])[] = [
  [["GET", "HEAD"], /^\/ok$/],
  // Studio and Agent Inbox read it before they have a key. It contains no data of users.
  [["GET", "HEAD"], /^\/info$/],
  // Pages of the web app contain no data; they load it from /app/api and the APIs.
  [["GET", "HEAD"], /^\/app(\/(?!api(\/|$)).*)?$/],
  [["GET", "HEAD"], /^\/?$/],
  [["GET", "HEAD"], /^(\/api-host)?\/o\//],
  [["GET", "HEAD"], /^\/prompts\//],
  [["GET", "HEAD"], /^((\/api)?\/v2|\/api\/v1)?\/public\//],
  [["POST"], /^((\/api)?\/v2|\/api\/v1)?\/public\/[^/]+\/runs\/query$/],
  [["GET", "POST"], /^(\/api\/v1)?\/feedback\/tokens\/[^/]+$/],
  [["GET"], /^(\/api-host)?\/v2\/auth\/(callback\/[^/]+|setup\/[^/]+|done)$/],
  [["GET"], /^(\/api-host)?\/host-oauth-callback\/[^/]+$/],
  [["PUT"], /^(\/api-host)?\/v2\/uploads\/[^/]+$/],
];

/** Whether a request loads a file of UI components. Pages of any origin can load these files, and browsers send no API key for them. */
export const isUiFile = (method: string, path: string): boolean =>
  (method === "GET" || method === "HEAD") && /^\/ui\/[^/]+\/[^/]+$/.test(path);

const WRITE_METHODS: readonly string[] = ["POST", "PUT", "PATCH", "DELETE"];

/**
 * The required scope of a path. The first matching row applies. A row matches the path and everything below it; `*` matches one
 * segment. A row with methods matches only these methods. Null means any authenticated caller. A path without a row also
 * requires authentication and then causes a 404. A test checks that every route has a row.
 */
const SCOPES_BY_PATH: readonly (readonly [path: string, scope: Scope | null, methods?: readonly string[]])[] = [
  ["/assistants", "agents"],
  ["/threads", "agents"],
  ["/runs/query", "experiments"],
  ["/runs/stats", "experiments"],
  ["/runs/*/join", "agents"],
  ["/runs/*/stream", "agents"],
  ["/runs/wait", "agents"],
  ["/runs/stream", "agents"],
  // `/runs/batch` and `/runs` belong to the agent server or to traces, depending on the body, so the handler checks the scope.
  ["/runs/batch", null],
  ["/runs/cancel", "agents"],
  ["/runs/crons", "agents"],
  // All other paths below /runs belong to experiments.
  ["/runs/*", "experiments"],
  ["/runs", null],
  ["/webhooks", "agents"],
  ["/store", "agents"],
  ["/ui", "agents"],
  ["/mcp", "agents"],
  ["/ag-ui", "agents"],
  ["/a2a", "agents"],
  ["/.well-known/agent-card.json", "agents"],
  ["/deployments", "agents"],
  ["/api/v1", "experiments"],
  ["/api/v2", "experiments"],
  ["/datasets", "experiments"],
  ["/examples", "experiments"],
  ["/sessions", "experiments"],
  ["/feedback", "experiments"],
  ["/feedback-configs", "experiments"],
  ["/annotation-queues", "experiments"],
  ["/repos", "experiments"],
  ["/commits", "experiments"],
  ["/likes", "experiments"],
  ["/settings", "experiments"],
  ["/workspaces", "experiments"],
  ["/model-price-map", "experiments"],
  ["/public", "experiments"],
  ["/otel", "experiments"],
  ["/v1/platform", "experiments"],
  ["/v2/runs", "experiments"],
  ["/v2/datasets", "experiments"],
  ["/v2/public", "experiments"],
  ["/v2/threads", "experiments"],
  ["/v2/traces", "experiments"],
  ["/v2/auth/providers", "providers", WRITE_METHODS],
  // Agent-owned tokens, which all users of the agent share.
  ["/v2/auth/agents/*/providers", "admin"],
  ["/v2/auth", "tokens"],
  ["/host-oauth-callback", "tokens"],
  ["/v2/openapi.json", null],
  ["/v2", "deployments"],
  ["/v1/projects", "deployments"],
  ["/v1/integrations", "deployments"],
  ["/admin", "admin"],
  ["/internal", "admin"],
  ["/app/api/session", null],
  ["/app/api/annotation-queues", "experiments"],
  ["/app/api/datasets", "experiments"],
  ["/app/api/traces", "experiments"],
  ["/app/api/reprice", "experiments"],
  ["/app/api/runs", "agents"],
  ["/app/api/threads", "agents"],
  ["/metrics", "admin"],
  ["/openapi.json", null],
  ["/docs", null],
];

/** Second mount point of the control plane. */
const HOST_PREFIX = "/api-host";

export const isPublic = (method: string, path: string): boolean =>
  isUiFile(method, path) || PUBLIC_PATHS.some(([methods, pattern]) => methods.includes(method) && pattern.test(path));

/** Returns the required scope of a request; null for any authenticated caller, undefined when no row matches the path. */
export function scopeOf(path: string, method: string): Scope | null | undefined {
  if (path === "" || path === "/") return null;
  const segments = path.split("/");
  const unprefixed = segments[1] === HOST_PREFIX.slice(1) ? ["", ...segments.slice(2)] : segments;
  return ROWS.find(
    ([row, , methods]) =>
      (methods?.includes(method) ?? true) &&
      row.every((segment, i) => segment === unprefixed[i] || (segment === "*" && unprefixed[i])),
  )?.[1];
}

const ROWS = SCOPES_BY_PATH.map(([path, scope, methods]) => [path.split("/"), scope, methods] as const);
