import type { Database } from "../../platform/database/database.ts";
import { dropOwnSchema, ensureOwnSchema, MissingRightError } from "../storage/deployment-schema.ts";
import { DeployError, type InstanceOrder } from "./driver.ts";
import { schemaOf, urlOfDeployment } from "./schema-url.ts";

/** The databases of deployments, which are the same whichever driver runs them. */
export interface OwnDatabases {
  /**
   * Makes what the database of a deployment needs, and says where it is; undefined: the embedded one, in its data folder.
   *
   * @throws DeployError when the service's own user may not make it
   */
  of(order: Pick<InstanceOrder, "deployment_id" | "database_password">): Promise<string | undefined>;
  /** Drops it; an embedded one goes with the data folder. */
  drop(deployment_id: string): Promise<void>;
}

/** @param database_url of the service's own Postgres: each deployment gets a schema there, and a role that owns nothing else */
export const ownDatabases = (database: Database, database_url: string | undefined): OwnDatabases => ({
  async of({ deployment_id, database_password }) {
    if (database_url === undefined) return undefined;
    const schema = schemaOf(deployment_id);
    const role = await database
      .write((tx) => ensureOwnSchema(tx, schema, database_password))
      .catch((error: Error) => {
        throw error instanceof MissingRightError ? new DeployError(error.message) : error;
      });
    return urlOfDeployment(database_url, { schema, role, password: database_password });
  },
  async drop(deployment_id) {
    if (database_url !== undefined) await database.write((tx) => dropOwnSchema(tx, schemaOf(deployment_id)));
  },
});
