import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Database } from "../../../platform/database/database.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { dataFolder, deploymentDatabases } from "../deployment-data.ts";
import type { DeployDriver } from "../driver.ts";
import { Engine } from "./engine.ts";
import { foldersIn } from "./folders.ts";
import { Images } from "./images.ts";
import { Instances } from "./instances.ts";
import { PulledImages } from "./pulled-images.ts";

export interface DockerDriverOptions {
  /** The driver stores its files in the subfolders `control/docker` and `control/data`. */
  data_dir: string;
  /** Path of the local Docker socket. */
  docker_socket: string;
  /** Docker network. If undefined, the driver creates a network. */
  docker_network: string | undefined;
  docker_registries: readonly string[];
  database: Database;
  /** URL of the service's Postgres, in which each deployment gets its own schema. If undefined, each deployment has its own SQLite database. */
  database_url: string | undefined;
  log: Log;
}

/** Runs deployments as containers of existing images. Connects to Docker on first use, so the service starts without Docker. */
export function createDockerDriver(options: DockerDriverOptions): DeployDriver {
  const { docker_socket, docker_network: network, database, database_url, log } = options;
  const folders = foldersIn(join(options.data_dir, "control"));
  const engine = new Engine(docker_socket);
  const images = new Images(engine, new PulledImages(folders.pulled), options.docker_registries);
  const databases = deploymentDatabases(database, database_url);
  const instances = new Instances({ engine, images, folders, network, databases, log });
  return {
    kind: "docker",
    pin: (spec, io) => images.pin(spec, io),
    ensure: (spec) => instances.ensure(spec),
    probe: (ref) => instances.probe(ref),
    stop: (ref, { grace_ms }) => instances.stop(ref, grace_ms),
    list: () => instances.list(),
    async remove({ deployment_id }) {
      for (const ref of await instances.list(deployment_id)) await instances.stop(ref, 0);
      const legacy = dataFolder({ data: folders.legacy_data }, deployment_id);
      // A folder of another user belongs to the process driver, which has run an earlier revision.
      const isOwn = (await lstat(legacy).catch(() => undefined))?.uid === 0;
      for (const folder of [dataFolder(folders, deployment_id), ...(isOwn ? [legacy] : [])])
        await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      await databases.drop(deployment_id);
      await images.release(deployment_id);
    },
    close: () => instances.close(),
  };
}
