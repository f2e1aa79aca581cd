import type { Database } from "../storage/database.ts";

/** What the rules of experiments work with. */
export interface ExperimentsContext {
  database: Database;
}
