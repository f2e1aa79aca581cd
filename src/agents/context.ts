import type { Engine } from "../engine/engine.ts";
import type { TypeSchemaReader } from "../graphs/type-schemas/reader.ts";
import type { Database } from "../storage/database.ts";
import type { GraphCatalog } from "./graph-catalog.ts";

/** What the rules of the agent server work with. */
export interface AgentContext {
  database: Database;
  engine: Engine;
  catalog: GraphCatalog;
  type_schemas: TypeSchemaReader;
}
