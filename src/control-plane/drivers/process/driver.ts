import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, readlink, realpath, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { listWorkspaces } from "../../../access/index.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { systemLookup } from "../../../platform/lib/safe-fetch/addresses.ts";
import { dataFolder, deploymentDatabases } from "../deployment-data.ts";
import { type DeployDriver, DeployError } from "../driver.ts";
import { type BuildSettings, build } from "./build.ts";
import { removeAbandonedBuilds } from "./build-workspace.ts";
import { foldersIn, knownHostsFile, npmCache, pythonEnvironments } from "./folders.ts";
import { startHeartbeat } from "./heartbeat.ts";
import { Instances } from "./instances.ts";
import { pruneEnvironments } from "./source/python.ts";
import { type DeployUser, listNames, removeTree, SystemUsers } from "./system-users.ts";

export interface ProcessDriverOptions {
  /** The driver stores its files in the subfolder `control`. */
  data_dir: string;
  /** Path of the Threadmill executable. */
  program: string;
  /** System variables such as PATH, without the variables of the service. */
  system_env: Readonly<Record<string, string>>;
  build_timeout_ms: number;
  /** An instance exits when no control plane has been running for this long. */
  orphan_ms: number;
  /** Grace period for stopping all instances when the driver closes. If undefined, instances keep running. */
  stop_grace_ms?: number | undefined;
  git_protocols: readonly string[];
  git_hosts: readonly string[];
  unpack_limits?: BuildSettings["unpack_limits"];
  deploy_user: DeployUser;
  /** Whether source is built. With `auto`, it is not built if several workspaces exist and their deployments are not isolated. */
  deploy_process: "on" | "off" | "auto";
  database: Database;
  /** URL of the service's Postgres, in which each deployment gets its own schema. If undefined, each deployment has its own SQLite database. */
  database_url: string | undefined;
  log: Log;
}

/**
 * Runs deployments as local processes. A build is a folder, and an instance is a Threadmill process that serves a build.
 * If the service runs as root, system users can isolate deployments. Otherwise, deployments only have separate folders and environments.
 */
export async function createProcessDriver(options: ProcessDriverOptions): Promise<DeployDriver> {
  const { program, system_env, build_timeout_ms, orphan_ms, database, database_url, log } = options;
  const folders = foldersIn(join(options.data_dir, "control"));
  await removeAbandonedBuilds(folders.workspaces);
  let prepared: Promise<SystemUsers> | undefined;
  const open = async () => {
    const users = await SystemUsers.prepare(folders, options.deploy_user, program);
    if (users.unavailable_reason !== undefined)
      log.warn({ reason: users.unavailable_reason }, "deployments run as the service's system user");
    await providePackages(folders.builds, program);
    return users;
  };
  // Runs on first use, so that a service without deployments creates no folders.
  const prepare = () => {
    prepared ??= open().catch((error) => {
      prepared = undefined;
      throw error;
    });
    return prepared;
  };
  const git = { protocols: options.git_protocols, hosts: options.git_hosts, lookup: systemLookup };
  const settings = { folders, system_env, git, build_timeout_ms, unpack_limits: options.unpack_limits };
  const checkAllowed = async ({ shared_reason }: SystemUsers) => {
    const isOff =
      options.deploy_process === "off" ||
      (options.deploy_process === "auto" &&
        shared_reason !== undefined &&
        (await listWorkspaces(database.read, undefined)).length > 1);
    if (!isOff) return;
    const reason =
      options.deploy_process === "off"
        ? ""
        : ` Deployments of different workspaces would not be isolated from each other, because ${shared_reason}.`;
    throw new DeployError(
      `This service does not build from source (THREADMILL_DEPLOY_PROCESS=${options.deploy_process}).${reason} Deploy an image instead.`,
    );
  };
  const databases = deploymentDatabases(database, database_url);
  const instances = new Instances({ folders, program, system_env, databases, users: prepare, orphan_ms, log });
  const heartbeat = startHeartbeat(folders.heartbeat, orphan_ms);
  return {
    kind: "process",
    build: async (spec, io) => {
      const users = await prepare();
      await checkAllowed(users);
      return build(spec, io, { ...settings, users });
    },
    ensure: (spec) => instances.ensure(spec),
    probe: (ref) => instances.probe(ref),
    stop: (ref, { grace_ms }) => instances.stop(ref, grace_ms),
    list: () => instances.list(),
    async prune({ deployment_id, keep }) {
      const folder = join(folders.builds, deployment_id);
      const old = (await listNames(folder)).filter((artifact) => !keep.includes(artifact));
      for (const artifact of old) {
        // Renamed first: the rest after an interrupted removal must not be used as the build of the same inputs.
        const removed = join(folder, `${randomUUID()}.old`);
        await rename(join(folder, artifact), removed);
        await removeTree(removed);
      }
      await pruneEnvironments(pythonEnvironments(folders, deployment_id), folder);
    },
    async remove({ deployment_id }) {
      for (const ref of await instances.list()) if (ref.deployment_id === deployment_id) await instances.stop(ref, 0);
      if (existsSync(dataFolder(folders, deployment_id))) await (await prepare()).killProcessesOf(deployment_id);
      const remaining = [
        join(folders.builds, deployment_id),
        npmCache(folders, deployment_id),
        pythonEnvironments(folders, deployment_id),
        dataFolder(folders, deployment_id),
        knownHostsFile(folders, deployment_id),
      ];
      await Promise.all(remaining.map(removeTree));
      await databases.drop(deployment_id);
    },
    async close() {
      heartbeat.stop();
      await instances.close();
      if (options.stop_grace_ms !== undefined) await instances.stopAll(options.stop_grace_ms);
    },
  };
}

/** Source can use these packages without installing them. */
const PROVIDED = ["@langchain/langgraph", "@langchain/core"];

/**
 * Links packages of Threadmill into a `node_modules` folder above all builds. Node.js searches the build first, so packages of the
 * source take precedence.
 *
 * @param program path of the Threadmill executable, from which the packages are resolved
 */
async function providePackages(builds: string, program: string): Promise<void> {
  for (const name of PROVIDED) {
    const link = join(builds, "node_modules", name);
    const target = await realpath(findPackage(name, dirname(program)));
    if ((await readlink(link).catch(() => undefined)) === target) continue;
    for (const folder of [join(builds, "node_modules"), dirname(link)]) {
      await mkdir(folder, { recursive: true });
      // The mode must not depend on the umask, because instances can run as other users.
      await chmod(folder, 0o755);
    }
    // The link is replaced atomically, so that an instance that is starting always finds a link.
    const fresh = `${link}.${process.pid}`;
    await rm(fresh, { force: true });
    await symlink(target, fresh, "junction");
    await rename(fresh, link);
  }
}

function findPackage(name: string, from: string): string {
  const found = join(from, "node_modules", name);
  if (existsSync(found)) return found;
  if (dirname(from) === from)
    throw new Error(`The package ${name} is missing from Threadmill's dependencies: reinstall Threadmill.`);
  return findPackage(name, dirname(from));
}
