import type { Database } from "../platform/database/database.ts";
import { DatabaseUnavailableError } from "../platform/database/database-errors.ts";
import { ApiError } from "../platform/errors.ts";
import type { Engine } from "./engine/index.ts";
import type { GraphCatalog } from "./graph-catalog.ts";
import type { GraphQuery } from "./graph-hosts/host.ts";
import { GraphQueryError } from "./graph-hosts/query-host.ts";
import type { TypeSchemaReader } from "./graph-hosts/type-schemas/reader.ts";

export interface AgentContext {
  database: Database;
  engine: Engine;
  catalog: GraphCatalog;
  type_schemas: TypeSchemaReader;
}

/** @throws ApiError graph_not_found, graph_unavailable, graph_failed; unavailable if no host responds */
export async function queryGraph<Q extends GraphQuery>({ engine, catalog }: AgentContext, query: Q) {
  catalog.require(query.graph.graph_id);
  try {
    return await engine.reader.query(query);
  } catch (error) {
    if (!(error instanceof GraphQueryError)) throw error;
    if (error.kind === DatabaseUnavailableError.name) throw new DatabaseUnavailableError(error.message);
    if (error.kind === "GraphHostError")
      throw new ApiError("unavailable", { reason: `The graph could not process the request. ${error.message}` }, error);
    throw new ApiError("graph_failed", { reason: `${error.kind}: ${error.message}` }, error);
  }
}
