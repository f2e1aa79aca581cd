import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../../lib/log.ts";
import { systemLookup } from "../../../lib/safe-fetch/addresses.ts";
import type { Database } from "../../../storage/database.ts";
import type { DeployDriver } from "../../driver.ts";
import { dataFolder } from "../data-folder.ts";
import { ownDatabases } from "../own-databases.ts";
import { type BuildSettings, build } from "./build.ts";
import { foldersIn } from "./folders.ts";
import { Instances } from "./instances.ts";
import { removeHalfBuilds } from "./making.ts";
import { providePackages } from "./provided-packages.ts";

export interface ProcessDriverOptions {
  /** Everything of the driver lies in the folder `control` of this one. */
  data_dir: string;
  /** The executable of Threadmill. */
  program: string;
  /** PATH and the like: what a program needs of the system, and nothing of the service. */
  system_env: Readonly<Record<string, string>>;
  build_timeout_ms: number;
  git_protocols: readonly string[];
  git_hosts: readonly string[];
  unpack_limits?: BuildSettings["unpack_limits"];
  database: Database;
  /** Of the service's own Postgres: each deployment gets a schema there. Undefined: each gets an embedded database. */
  database_url: string | undefined;
  log: Log;
}

/**
 * Runs deployments as processes of this machine: builds are folders, and an instance is this very program, which serves one of
 * them. Processes and builds are separated by folders and environment, not by rights of the operating system.
 */
export async function createProcessDriver(options: ProcessDriverOptions): Promise<DeployDriver> {
  const { program, system_env, build_timeout_ms, database, database_url, log } = options;
  const folders = foldersIn(join(options.data_dir, "control"));
  await removeHalfBuilds(folders.making);
  let prepared: Promise<void> | undefined;
  // Services that deploy nothing have no folders of it.
  const prepare = () => {
    prepared ??= providePackages(folders.builds, program).catch((error) => {
      prepared = undefined;
      throw error;
    });
    return prepared;
  };
  const git = { protocols: options.git_protocols, hosts: options.git_hosts, lookup: systemLookup };
  const { unpack_limits } = options;
  const settings = { folders, system_env, git, build_timeout_ms, ...(unpack_limits && { unpack_limits }) };
  const databases = ownDatabases(database, database_url);
  const instances = new Instances({ folders, program, system_env, databases, log });
  return {
    kind: "process",
    build: async (order, io) => {
      await prepare();
      return build(order, io, settings);
    },
    ensure: async (order) => {
      await prepare();
      return instances.ensure(order);
    },
    probe: (ref) => instances.probe(ref),
    stop: (ref, { grace_ms }) => instances.stop(ref, grace_ms),
    list: () => instances.list(),
    async prune({ deployment_id, keep }) {
      const folder = join(folders.builds, deployment_id);
      const old = (await readdir(folder).catch(() => [])).filter((artifact) => !keep.includes(artifact));
      for (const artifact of old) await rm(join(folder, artifact), { recursive: true, force: true, maxRetries: 3 });
    },
    async remove({ deployment_id }) {
      for (const ref of await instances.list()) if (ref.deployment_id === deployment_id) await instances.stop(ref, 0);
      const left = [join(folders.builds, deployment_id), dataFolder(folders, deployment_id)];
      await Promise.all(left.map((folder) => rm(folder, { recursive: true, force: true, maxRetries: 3 })));
      await databases.drop(deployment_id);
    },
    close: () => instances.close(),
  };
}
