import type { Scope } from "../../platform/contract/caller.ts";

/**
 * What is open to everybody: probes have no key, what is shared has its token in the path, a browser that comes back
 * from an OAuth provider has nothing but a state, which is used once, and so is the token of an upload's URL.
 */
const OPEN: readonly (readonly [methods: readonly string[], path: RegExp])[] = [
  [["GET", "HEAD"], /^\/ok$/],
  // The pages show nothing by themselves; what they ask for is below /app/api or one of the APIs.
  [["GET", "HEAD"], /^\/app(\/(?!api(\/|$)).*)?$/],
  [["GET", "HEAD"], /^\/?$/],
  [["GET", "HEAD"], /^(\/api-host)?\/o\//],
  [["GET", "HEAD"], /^(\/api\/v1)?\/public\//],
  [["GET"], /^(\/api-host)?\/v2\/auth\/(callback\/[^/]+|setup\/[^/]+|done)$/],
  [["GET"], /^(\/api-host)?\/host-oauth-callback\/[^/]+$/],
  [["PUT"], /^(\/api-host)?\/v2\/uploads\/[^/]+$/],
];

const CHANGES: readonly string[] = ["POST", "PUT", "PATCH", "DELETE"];

/**
 * Which scope a path needs; the first row that fits counts. A path stands for everything below it too, and `*` for any one
 * part. A row with methods counts for these alone. Null: any key will do. What no row names needs a key as well, and is then not found; a test holds every route to a
 * row.
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
  ["/runs/batch", "agents"],
  ["/runs/cancel", "agents"],
  ["/runs/crons", "agents"],
  // Any other run by its id alone is one of an experiment.
  ["/runs/*", "experiments"],
  ["/runs", "agents"],
  ["/deployments", "agents"],
  ["/api/v1", "experiments"],
  ["/api/v2", "experiments"],
  ["/datasets", "experiments"],
  ["/examples", "experiments"],
  ["/sessions", "experiments"],
  ["/feedback", "experiments"],
  ["/feedback-configs", "experiments"],
  ["/public", "experiments"],
  ["/v1/platform", "experiments"],
  ["/v2/runs", "experiments"],
  ["/v2/datasets", "experiments"],
  ["/v2/auth/providers", "providers", CHANGES],
  // A token of an agent's own, which all of its users get.
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
  ["/app/api/datasets", "experiments"],
  ["/app/api/runs", "agents"],
  ["/app/api/threads", "agents"],
  ["/info", null],
  ["/openapi.json", null],
  ["/docs", null],
];

/** Where the control plane is mounted a second time. */
const HOST = "/api-host";

export const isOpen = (method: string, path: string): boolean =>
  OPEN.some(([methods, pattern]) => methods.includes(method) && pattern.test(path));

/** The scope that a request needs; null when any key will do, undefined when no row of the table names its path. */
export function scopeOf(path: string, method: string): Scope | null | undefined {
  if (path === "" || path === "/") return null;
  const parts = path.split("/");
  const plain = parts[1] === HOST.slice(1) ? ["", ...parts.slice(2)] : parts;
  return ROWS.find(
    ([row, , methods]) =>
      (methods?.includes(method) ?? true) && row.every((part, i) => part === plain[i] || (part === "*" && plain[i])),
  )?.[1];
}

const ROWS = SCOPES_BY_PATH.map(([path, scope, methods]) => [path.split("/"), scope, methods] as const);
