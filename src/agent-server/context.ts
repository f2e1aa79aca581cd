import type { Database } from "../platform/database/database.ts";
import type { Engine } from "./engine/engine.ts";
import type { GraphCatalog } from "./graph-catalog.ts";
import type { TypeSchemaReader } from "./graph-hosts/type-schemas/reader.ts";

/** What the rules of the agent server work with. */
export interface AgentContext {
  database: Database;
  engine: Engine;
  catalog: GraphCatalog;
  type_schemas: TypeSchemaReader;
}
