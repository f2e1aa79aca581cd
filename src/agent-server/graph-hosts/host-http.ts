/** The part of the host protocol (host.ts) for HTTP. */

/** HTTP requests between the service and a host, in both directions. The sender assigns `id` and reads the response body chunk by chunk. */
export type FetchRequest =
  | {
      op: "fetch";
      id: number;
      method: string;
      /** Path and query, without the prefix under which the service is mounted. */
      path: string;
      headers: [name: string, value: string][];
      body?: Uint8Array;
    }
  | { op: "fetch_read"; id: number }
  /** The response is no longer needed. */
  | { op: "fetch_cancel"; id: number };

export type NewFetch = Extract<FetchRequest, { op: "fetch" }>;

export interface FetchAnswer {
  status: number;
  headers: [name: string, value: string][];
  has_body: boolean;
}

/** A request by the HTTP app of the project. `id` is that of the request that the app responds to. */
export type AppRequest =
  /** The next chunk of the body of that request. */
  | { op: "app_body"; id: number }
  /** `is_next`: `request` is that request itself, which a middleware passes on to the routes of the service. */
  | { op: "app_fetch"; id: number; is_next: boolean; request: NewFetch };

/** A query to the HTTP app of the project. */
export type AppQuery =
  | { kind: "app_routes" }
  /**
   * Fields of a new request: `origin` of its URL; `has_body`: whether it has a body, which the app reads in chunks; `user`: the authenticated
   * user as JSON text, which Python apps get in their scope.
   */
  | { kind: "app"; origin?: string; has_body?: boolean; user?: string | undefined; request: FetchRequest };

/**
 * The routes and middleware that a Hono, Starlette or FastAPI app declares; null for any other kind of app. Paths are in Hono's syntax. Method
 * `ALL` matches every method.
 */
export type AppRoutes = readonly { method: string; path: string; is_middleware: boolean }[] | null;
