import { existsSync } from "node:fs";
import { join } from "node:path";
import { listWorkspaces } from "../../../access/index.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { systemLookup } from "../../../platform/lib/safe-fetch/addresses.ts";
import { dataFolder } from "../data-folder.ts";
import { type DeployDriver, DeployError } from "../driver.ts";
import { ownDatabases } from "../own-databases.ts";
import { type BuildSettings, build } from "./build.ts";
import { foldersIn, knownHostsFile, npmCache } from "./folders.ts";
import { startHeartbeat } from "./heartbeat.ts";
import { Instances } from "./instances.ts";
import { removeHalfBuilds } from "./making.ts";
import { providePackages } from "./source/provided-packages.ts";
import { type DeployUser, namesIn, removeTree, SystemUsers } from "./system-users.ts";

export interface ProcessDriverOptions {
  /** Everything of the driver lies in the folder `control` of this one. */
  data_dir: string;
  /** The executable of Threadmill. */
  program: string;
  /** PATH and the like: what a program needs of the system, and nothing of the service. */
  system_env: Readonly<Record<string, string>>;
  build_timeout_ms: number;
  /** How long instances serve without a control plane. */
  orphan_ms: number;
  /** Stops all instances when the driver is closed, with this grace. Undefined: they outlive it. */
  stop_grace_ms?: number | undefined;
  git_protocols: readonly string[];
  git_hosts: readonly string[];
  unpack_limits?: BuildSettings["unpack_limits"];
  deploy_user: DeployUser;
  /** Whether anything is built: `auto` unless deployments of several workspaces would have the rights of the service. */
  deploy_process: "on" | "off" | "auto";
  database: Database;
  /** Of the service's own Postgres: each deployment gets a schema there. Undefined: each gets an embedded database. */
  database_url: string | undefined;
  log: Log;
}

/**
 * Runs deployments as processes of this machine: builds are folders, and an instance is this very program, which serves one of
 * them. Where the service is root they are kept apart by users of the system, elsewhere by folders and environment alone.
 */
export async function createProcessDriver(options: ProcessDriverOptions): Promise<DeployDriver> {
  const { program, system_env, build_timeout_ms, orphan_ms, database, database_url, log } = options;
  const folders = foldersIn(join(options.data_dir, "control"));
  await removeHalfBuilds(folders.making);
  let prepared: Promise<SystemUsers> | undefined;
  const open = async () => {
    const users = await SystemUsers.prepare(folders, options.deploy_user, program);
    if (users.missing !== undefined)
      log.warn({ reason: users.missing }, "builds and instances of deployments run with the rights of the service");
    await providePackages(folders.builds, program);
    return users;
  };
  // Services that deploy nothing have no folders of it.
  const prepare = () => {
    prepared ??= open().catch((error) => {
      prepared = undefined;
      throw error;
    });
    return prepared;
  };
  const git = { protocols: options.git_protocols, hosts: options.git_hosts, lookup: systemLookup };
  const { unpack_limits } = options;
  const settings = { folders, system_env, git, build_timeout_ms, ...(unpack_limits && { unpack_limits }) };
  const checkAllowed = async ({ shared }: SystemUsers) => {
    const isOff =
      options.deploy_process === "off" ||
      (options.deploy_process === "auto" &&
        shared !== undefined &&
        (await listWorkspaces(database.read, undefined)).length > 1);
    if (!isOff) return;
    const reason = options.deploy_process === "off" ? "" : ` Several workspaces share the service, and ${shared}.`;
    throw new DeployError(
      `Source is not built here (THREADMILL_DEPLOY_PROCESS=${options.deploy_process}).${reason} Deploy an image.`,
    );
  };
  const databases = ownDatabases(database, database_url);
  const instances = new Instances({ folders, program, system_env, databases, users: prepare, orphan_ms, log });
  const heartbeat = startHeartbeat(folders.heartbeat, orphan_ms);
  return {
    kind: "process",
    build: async (order, io) => {
      const users = await prepare();
      await checkAllowed(users);
      return build(order, io, { ...settings, users });
    },
    ensure: (order) => instances.ensure(order),
    probe: (ref) => instances.probe(ref),
    stop: (ref, { grace_ms }) => instances.stop(ref, grace_ms),
    list: () => instances.list(),
    async prune({ deployment_id, keep }) {
      const folder = join(folders.builds, deployment_id);
      const old = (await namesIn(folder)).filter((artifact) => !keep.includes(artifact));
      for (const artifact of old) await removeTree(join(folder, artifact));
    },
    async remove({ deployment_id }) {
      for (const ref of await instances.list()) if (ref.deployment_id === deployment_id) await instances.stop(ref, 0);
      if (existsSync(dataFolder(folders, deployment_id))) await (await prepare()).endAllOf(deployment_id);
      const left = [
        join(folders.builds, deployment_id),
        npmCache(folders, deployment_id),
        dataFolder(folders, deployment_id),
        knownHostsFile(folders, deployment_id),
      ];
      await Promise.all(left.map(removeTree));
      await databases.drop(deployment_id);
    },
    async close() {
      heartbeat.stop();
      await instances.close();
      if (options.stop_grace_ms !== undefined) await instances.stopAll(options.stop_grace_ms);
    },
  };
}
