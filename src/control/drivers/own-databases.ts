import { createSchemaIfMissing, dropSchema } from "../../storage/control/deployment-schema.ts";
import type { Database } from "../../storage/database.ts";
import { schemaOf, urlWithSchema } from "./schema-url.ts";

/** The databases of deployments, which are the same whichever driver runs them. */
export interface OwnDatabases {
  /** Makes what the database of a deployment needs, and says where it is; undefined: the embedded one, in its data folder. */
  of(deployment_id: string): Promise<string | undefined>;
  /** Drops it; an embedded one goes with the data folder. */
  drop(deployment_id: string): Promise<void>;
}

/** @param database_url of the service's own Postgres: each deployment gets a schema there */
export const ownDatabases = (database: Database, database_url: string | undefined): OwnDatabases => ({
  async of(deployment_id) {
    if (database_url === undefined) return undefined;
    await database.write((tx) => createSchemaIfMissing(tx, schemaOf(deployment_id)));
    return urlWithSchema(database_url, schemaOf(deployment_id));
  },
  async drop(deployment_id) {
    if (database_url !== undefined) await database.write((tx) => dropSchema(tx, schemaOf(deployment_id)));
  },
});
