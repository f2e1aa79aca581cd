import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { chmod, mkdir, readdir, readlink, rm, stat, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { dataFolder } from "../deployment-data.ts";
import type { Folders } from "./folders.ts";

const run = promisify(execFile);

export interface SystemUser {
  uid: number;
  gid: number;
}

/** A user name for all deployments, or a range of uids, from which each deployment gets its own uid. */
export type DeployUser = { name: string } | { from: number; to: number };

/** All users can traverse the folder, but only the owner can list the contents. */
const TRAVERSE_ONLY_MODE = 0o711;

/**
 * The system users of builds and instances. If the service runs as root, builds and instances run as other users, who can read
 * neither the files nor the environment of the service. With a range of uids, deployments are also isolated from each other.
 */
export class SystemUsers {
  /** Reason why builds and instances run as the user of the service; undefined if they run as other users. */
  readonly unavailable_reason: string | undefined;
  readonly #folders: Folders;
  readonly #config: DeployUser;
  readonly #known = new Map<string, Promise<SystemUser>>();

  private constructor(folders: Folders, config: DeployUser, unavailable_reason: string | undefined) {
    this.#folders = folders;
    this.#config = config;
    this.unavailable_reason = unavailable_reason;
  }

  /** @param program a file that the users must be able to read */
  static async prepare(folders: Folders, config: DeployUser, program: string): Promise<SystemUsers> {
    if (!isRoot()) return new SystemUsers(folders, config, "the service is not running as root");
    const control = dirname(folders.data);
    for (const folder of [
      control,
      folders.builds,
      folders.workspaces,
      folders.data,
      folders.npm_cache,
      folders.python_envs,
    ]) {
      await mkdir(folder, { recursive: true });
      await chmod(folder, TRAVERSE_ONLY_MODE);
    }
    const data_dir = dirname(control);
    await chmod(data_dir, ((await stat(data_dir)).mode & 0o777) | 0o011);
    return new SystemUsers(folders, config, await findUserProblem(config, [program, folders.data]));
  }

  /** Reason why deployments of several workspaces are not isolated; undefined if they are isolated. */
  get shared_reason(): string | undefined {
    if (this.unavailable_reason !== undefined) return this.unavailable_reason;
    return "name" in this.#config ? `all deployments run as the user ${this.#config.name}` : undefined;
  }

  /** Returns the system user that owns the deployment's data folder; undefined if the deployment runs as the user of the service. */
  of(deployment_id: string): Promise<SystemUser | undefined> {
    if (this.unavailable_reason !== undefined) return Promise.resolve(undefined);
    const known = this.#known.get(deployment_id) ?? this.#find(deployment_id);
    this.#known.set(deployment_id, known);
    known.catch(() => this.#known.delete(deployment_id));
    return known;
  }

  /** Kills all processes of a deleted deployment that has its own uid, including those outside of its process groups. */
  async killProcessesOf(deployment_id: string): Promise<void> {
    this.#known.delete(deployment_id);
    const owner = await ownerOf(dataFolder(this.#folders, deployment_id));
    // The user that THREADMILL_DEPLOY_USER names may have other processes, so only the processes of allocated uids are killed.
    if (this.unavailable_reason !== undefined || owner === undefined || !(await this.#isAllocated(owner))) return;
    // The command can fail if the user has no processes.
    await run("/bin/sh", ["-c", "kill -9 -1"], { ...owner, cwd: "/", env: {} }).catch(() => undefined);
  }

  /** Returns the owner of the data folder. Assigns a user to a new folder, and to one that an earlier version created as root. */
  async #find(deployment_id: string): Promise<SystemUser> {
    const folder = dataFolder(this.#folders, deployment_id);
    const owner = await ownerOf(folder);
    if (owner && owner.uid !== 0) return owner;
    if (!owner) await mkdir(folder, { mode: 0o700 });
    const user = await this.#allocate();
    await chownTree(folder, user);
    return user;
  }

  #isAllocated({ uid }: SystemUser): Promise<boolean> {
    return ownerOf(join(this.#allocations, String(uid))).then((found) => found !== undefined);
  }

  /** Folder of the uid allocations: one folder per allocated uid. */
  get #allocations(): string {
    return join(dirname(this.#folders.data), "uids");
  }

  /** A uid is never reused. Otherwise a file that a deleted deployment left elsewhere, such as a setuid file, would belong to another deployment. */
  async #allocate(): Promise<SystemUser> {
    if ("name" in this.#config) return userNamed(this.#config.name);
    const { from, to } = this.#config;
    await mkdir(this.#allocations, { recursive: true, mode: 0o700 });
    // Starts at a random uid, because another service on this machine may use the same range.
    const count = to - from + 1;
    const start = randomInt(count);
    for (let n = 0; n < count; n++) {
      const uid = from + ((start + n) % count);
      const allocation = join(this.#allocations, String(uid));
      if ((await createFolder(allocation)) && (await register(uid, allocation))) return { uid, gid: uid };
    }
    throw new Error(`All uids from ${from} to ${to} are allocated: extend the range in THREADMILL_DEPLOY_USER.`);
  }
}

const isRoot = (): boolean => process.getuid?.() === 0;

/** Returns false when the path exists. */
export const createFolder = (folder: string, mode?: number): Promise<boolean> =>
  mkdir(folder, { mode }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );

/** Allocated uids of all services on this machine, as links to the allocation folders. Empty after a restart of the machine. */
const REGISTRY = "/run/threadmill/uids";

/**
 * Registers a uid for this service. A uid whose service was removed with its data folder is free. If the registry is not writable, as in
 * a container with a read-only file system, registration always succeeds.
 *
 * @returns false when the uid belongs to another service
 */
async function register(uid: number, allocation: string): Promise<boolean> {
  const entry = join(REGISTRY, String(uid));
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      await mkdir(REGISTRY, { recursive: true, mode: 0o700 });
      await symlink(allocation, entry);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") return true;
    }
    if (await ownerOf(entry)) return (await readlink(entry)) === allocation;
    await rm(entry, { force: true });
  }
  return false;
}

const ownerOf = (path: string): Promise<SystemUser | undefined> =>
  stat(path).then(
    ({ uid, gid }) => ({ uid, gid }),
    () => undefined,
  );

/** With these options, `chown` follows no links, not even links that are created while it runs. */
export async function chownTree(path: string, { uid, gid }: SystemUser): Promise<void> {
  await run("chown", ["-R", "-h", "-P", `${uid}:${gid}`, "--", path]);
}

export async function chownTreeIfRoot(path: string, user: SystemUser): Promise<void> {
  if ((await ownerOf(path))?.uid === 0) await chownTree(path, user);
}

/** Removes a folder that other users can change concurrently. `rm` of Node.js could follow a link. */
export async function removeTree(path: string): Promise<void> {
  if (!isRoot()) return rm(path, { recursive: true, force: true, maxRetries: 3 });
  // `rm` fails when a process writes into the folder at the same time.
  for (let attempt = 1; ; attempt++) {
    try {
      await run("rm", ["-rf", "--", path]);
      return;
    } catch (error) {
      if (attempt === 3) throw error;
      await delay(100);
    }
  }
}

/** Creates an empty file with the permissions of the user, because root could follow a link to a file of another user. */
export async function createEmptyFile(file: string, user: SystemUser): Promise<void> {
  const args = ["-c", 'umask 077; set -C; : > "$0"', file];
  await run("/bin/sh", args, { ...user, cwd: "/", env: {} }).catch(() => undefined);
}

export const listNames = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

async function userNamed(name: string): Promise<SystemUser> {
  const idOf = async (flag: string) => Number((await run("id", [flag, "--", name])).stdout);
  return { uid: await idOf("-u"), gid: await idOf("-g") };
}

/**
 * Runs a process as the user to detect inaccessible parent folders, missing users and missing permissions of a container.
 *
 * @returns the problem; undefined if the user can run Node.js and access the paths
 * @throws Error when the check itself fails, for example for lack of memory
 */
async function findUserProblem(config: DeployUser, paths: readonly string[]): Promise<string | undefined> {
  const user =
    "name" in config ? await userNamed(config.name).catch(() => undefined) : { uid: config.from, gid: config.from };
  if (!user) return `the system user ${JSON.stringify("name" in config ? config.name : "")} does not exist`;
  for (const path of paths) {
    const check = `fs.accessSync(${JSON.stringify(path)})`;
    try {
      await run(process.execPath, ["-e", check], { ...user, cwd: "/", env: {} });
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code === 1 || code === "EACCES" || code === "EPERM" || code === "EINVAL" || code === "ENOENT")
        return `a Node.js process with the uid ${user.uid} either cannot start or cannot access ${path}`;
      throw error;
    }
  }
  return undefined;
}
