import type { Database } from "../platform/database/database.ts";

/** What the rules of experiments work with. */
export interface ExperimentsContext {
  database: Database;
}
