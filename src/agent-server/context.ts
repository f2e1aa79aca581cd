import type { Database } from "../platform/database/database.ts";
import type { CustomAuth } from "./auth/custom-auth.ts";
import type { Engine } from "./engine/index.ts";
import type { GraphCatalog } from "./graph-catalog.ts";
import type { GraphQuery } from "./graph-hosts/host.ts";
import { queryFailure } from "./graph-hosts/query-host.ts";
import type { TypeSchemaReader } from "./graph-hosts/type-schemas/reader.ts";
import type { ThreadTtl } from "./storage/threads.ts";
import type { WebhookPolicy } from "./webhooks/webhook-policy.ts";

export interface AgentContext {
  database: Database;
  engine: Engine;
  catalog: GraphCatalog;
  type_schemas: TypeSchemaReader;
  webhooks: WebhookPolicy;
  /** Undefined if the project has no authentication handler. */
  auth: CustomAuth | undefined;
  /** Default time to live of threads: `checkpointer.ttl` in langgraph.json. */
  thread_ttl: Partial<ThreadTtl>;
}

/** @throws ApiError graph_not_found, graph_unavailable, graph_failed; unavailable if no host is responding */
export async function queryGraph<Q extends GraphQuery>({ engine, catalog }: AgentContext, query: Q) {
  catalog.require(query.graph.graph_id);
  try {
    return await engine.reader.query(query);
  } catch (error) {
    throw queryFailure(error);
  }
}
