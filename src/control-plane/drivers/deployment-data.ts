import { join } from "node:path";
import type { Database } from "../../platform/database/database.ts";
import { dropDeploymentSchema, ensureDeploymentSchema, MissingPrivilegeError } from "../storage/deployment-schema.ts";
import { DeployError, type InstanceSpec } from "./driver.ts";

/** Provides the database of each deployment. On Postgres, a deployment has the same schema with every driver. */
export interface DeploymentDatabases {
  /** The Postgres of the service; undefined with embedded databases. */
  server_url: string | undefined;
  /**
   * Creates the schema and role of a deployment. Returns the database URL, or undefined for the embedded database in the data folder.
   *
   * @throws DeployError when the service's Postgres user does not have a required privilege
   */
  of(spec: Pick<InstanceSpec, "deployment_id" | "database_password">): Promise<string | undefined>;
  /** Drops the schema and role. An embedded database is deleted with the data folder. */
  drop(deployment_id: string): Promise<void>;
}

/** @param database_url the service's Postgres, in which each deployment gets its own schema and role */
export const deploymentDatabases = (database: Database, database_url: string | undefined): DeploymentDatabases => ({
  server_url: database_url,
  async of({ deployment_id, database_password }) {
    if (database_url === undefined) return undefined;
    const schema = schemaOf(deployment_id);
    const role = await database
      .write((tx) => ensureDeploymentSchema(tx, schema, database_password))
      .catch((error: Error) => {
        throw error instanceof MissingPrivilegeError ? new DeployError(error.message) : error;
      });
    return deploymentDatabaseUrl(database_url, { schema, role, password: database_password });
  },
  async drop(deployment_id) {
    if (database_url !== undefined) await database.write((tx) => dropDeploymentSchema(tx, schemaOf(deployment_id)));
  },
});

/** Parent of the deployments' data folders, within the folder of the control plane. */
export const dataRoot = (control_dir: string): string => join(control_dir, "data");

/** All revisions of a deployment use the same folder. If the service runs as root, each driver has its own parent folder. */
export const dataFolder = ({ data }: { data: string }, deployment_id: string): string => join(data, deployment_id);

export const schemaOf = (deployment_id: string): string => `deployment_${deployment_id.replaceAll("-", "")}`;

/** Postgres URL parameters that contain credentials. */
const CREDENTIALS = ["user", "password", "passfile", "sslcert", "sslkey", "sslpassword"];

/** Returns the database URL with the credentials of the deployment's role and the deployment's schema as search path. */
function deploymentDatabaseUrl(
  database_url: string,
  { schema, role, password }: { schema: string; role: string; password: string },
): string {
  const url = new URL(database_url);
  for (const name of CREDENTIALS) url.searchParams.delete(name);
  [url.username, url.password] = [role, password];
  const options = [url.searchParams.get("options"), `-c search_path=${schema}`].filter(Boolean).join(" ");
  url.searchParams.set("options", options);
  // URLSearchParams encodes a space as `+`, which Postgres clients do not decode.
  url.search = url.search.replaceAll("+", "%20");
  return url.href;
}
