import type { MetadataFilter } from "../../platform/contract/caller.ts";

/** A query to the authentication module of the project. `user` and `value` are JSON texts. */
export type AuthQuery =
  /** Returns the names of the registered handlers. */
  | { kind: "auth_handlers" }
  /** `path_params`: an argument of handlers in Python. */
  | {
      kind: "authenticate";
      method: string;
      url: string;
      headers: [name: string, value: string][];
      path_params: Record<string, string>;
    }
  | { kind: "authorize"; event: AuthEvent; user: string; value: string };

export type AuthEvent =
  | `${"assistants" | "threads" | "crons"}:${"create" | "read" | "update" | "delete" | "search"}`
  | "threads:create_run"
  | `store:${"put" | "get" | "search" | "list_namespaces" | "delete"}`;

/** The response of a handler that refused a request. */
export interface AuthRefusal {
  refused: { status: number; message: string; headers: Record<string, string> };
}

/** The value after the handler's changes, and the handler's filter. */
export interface AuthDecision {
  value: string;
  filter: MetadataFilter | undefined;
}
