import { join } from "node:path";
import { createDockerDriver, type DockerDriverOptions } from "../../src/control-plane/drivers/docker/driver.ts";
import type { DeployDriver } from "../../src/control-plane/drivers/driver.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createDatabase, type DatabaseName } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";

/** A Docker driver with a data folder of its own. */
export interface DockerWorld {
  driver: DeployDriver;
  /** Where the driver keeps its files. */
  folder: string;
  database: Database;
  /** Another driver on the same folder, as a service that starts anew would have it. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

export async function openDockerWorld(
  name: DatabaseName,
  options: Pick<DockerDriverOptions, "docker_socket"> & Partial<DockerDriverOptions>,
): Promise<DockerWorld> {
  const at = await createDatabase(name, { empty: true });
  const database = openOn(at);
  const { data_dir, url: database_url } = at;
  const log = createLog("silent");
  const place = { docker_network: "host", docker_registries: ["localhost"], ...options };
  const open = () => createDockerDriver({ data_dir, database, database_url, log, ...place });
  const world: DockerWorld = {
    driver: open(),
    folder: join(data_dir, "control"),
    database,
    async restart() {
      await world.driver.close?.();
      world.driver = open();
    },
    async close() {
      for (const ref of await world.driver.list()) await world.driver.stop(ref, { grace_ms: 0 });
      await world.driver.close?.();
      await database.close();
      await at.drop();
    },
  };
  return world;
}
