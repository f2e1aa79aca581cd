/** The part of the host protocol (host.ts) for the store. */

/** An operation on the store of the run's workspace. */
export type StoreOperation =
  /** `value` is JSON. `index`: paths of the texts to index for semantic search; false for none. `ttl`: minutes until the item expires. */
  | { kind: "put"; namespace: string[]; key: string; value: string; index?: false | string[]; ttl?: number }
  /** `refresh_ttl`: whether the read restarts the time to live; default: the setting of the store. */
  | { kind: "get"; namespace: string[]; key: string; refresh_ttl?: boolean }
  | { kind: "delete"; namespace: string[]; key: string }
  | {
      kind: "search";
      refresh_ttl?: boolean;
      namespace_prefix: string[];
      filter?: Record<string, unknown>;
      query?: string;
      limit?: number;
      offset?: number;
    }
  | {
      kind: "namespaces";
      prefix?: string[];
      suffix?: string[];
      max_depth?: number;
      limit?: number;
      offset?: number;
    };

/** Operations on the store by a run's graph. The reply is the list of their results. */
export interface StoreRequest {
  op: "store";
  operations: StoreOperation[];
}

/** A result of `get` and `search`. Times are ISO 8601. */
export interface StoreItem {
  namespace: string[];
  key: string;
  value: Record<string, unknown>;
  created_at: string;
  updated_at: string;
  score?: number;
}

/** A query to the embedding function of the store. */
export interface EmbedQuery {
  kind: "embed";
  texts: string[];
  /** True if the texts are search queries, false if they are item texts. */
  is_query: boolean;
  dims: number;
}
