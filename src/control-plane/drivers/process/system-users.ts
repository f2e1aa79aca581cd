import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { chmod, mkdir, readdir, readlink, rm, stat, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { dataFolder } from "../data-folder.ts";
import type { Folders } from "./folders.ts";

const run = promisify(execFile);

/** Whom a build or an instance runs as. */
export interface SystemUser {
  uid: number;
  gid: number;
}

/** A name for all deployments, or numbers of which each deployment gets one. */
export type DeployUser = { name: string } | { from: number; to: number };

/** May be gone through by everybody, and listed by this user alone. */
const WAY_MODE = 0o711;

/**
 * Lets builds and instances run as other users of the system than the service, which has to be root for it: then they can read
 * neither its files nor its environment, and with a range of numbers no deployment those of another.
 */
export class SystemUsers {
  /** Why builds and instances have the rights of the service; undefined when they do not. */
  readonly missing: string | undefined;
  readonly #folders: Folders;
  readonly #who: DeployUser;
  readonly #known = new Map<string, Promise<SystemUser>>();

  private constructor(folders: Folders, who: DeployUser, missing: string | undefined) {
    this.#folders = folders;
    this.#who = who;
    this.missing = missing;
  }

  /** @param program what they have to be able to read */
  static async prepare(folders: Folders, who: DeployUser, program: string): Promise<SystemUsers> {
    if (!isRoot()) return new SystemUsers(folders, who, "the service is not root");
    const control = dirname(folders.data);
    for (const folder of [control, folders.builds, folders.making, folders.data, folders.npm_cache]) {
      await mkdir(folder, { recursive: true });
      await chmod(folder, WAY_MODE);
    }
    const data_dir = dirname(control);
    await chmod(data_dir, ((await stat(data_dir)).mode & 0o777) | 0o011);
    return new SystemUsers(folders, who, await whyNot(who, [program, folders.data]));
  }

  /** Why deployments of several workspaces are not kept apart; undefined when they are. */
  get shared(): string | undefined {
    return this.missing ?? ("name" in this.#who ? `all deployments are the user ${this.#who.name}` : undefined);
  }

  /** Whom a deployment runs as, with its data folder made; undefined: as the service. */
  of(deployment_id: string): Promise<SystemUser | undefined> {
    if (this.missing !== undefined) return Promise.resolve(undefined);
    const known = this.#known.get(deployment_id) ?? this.#find(deployment_id);
    this.#known.set(deployment_id, known);
    known.catch(() => this.#known.delete(deployment_id));
    return known;
  }

  /** Ends whatever a deployment that is deleted has left running, outside of its process groups, too. */
  async endAllOf(deployment_id: string): Promise<void> {
    this.#known.delete(deployment_id);
    const owner = await ownerOf(dataFolder(this.#folders, deployment_id));
    // Any other user may have other processes.
    if (this.missing !== undefined || owner === undefined || !(await this.#isGiven(owner))) return;
    // The shell is among those that it ends.
    await run("/bin/sh", ["-c", "kill -9 -1"], { ...owner, cwd: "/", env: {} }).catch(() => undefined);
  }

  /** The owner of its data folder, so that a service that starts anew finds the same one. What is root's was made before there were users. */
  async #find(deployment_id: string): Promise<SystemUser> {
    const folder = dataFolder(this.#folders, deployment_id);
    const owner = await ownerOf(folder);
    if (owner && owner.uid !== 0) return owner;
    if (!owner) await mkdir(folder, { mode: 0o700 });
    const user = await this.#choose();
    await give(folder, user);
    return user;
  }

  #isGiven({ uid }: SystemUser): Promise<boolean> {
    return ownerOf(join(this.#given, String(uid))).then((found) => found !== undefined);
  }

  /** A folder of each number that was given. */
  get #given(): string {
    return join(dirname(this.#folders.data), "uids");
  }

  /** No number is given twice: what a deployment has left outside of its folders, such as a setuid file, would be another's key. */
  async #choose(): Promise<SystemUser> {
    if ("name" in this.#who) return userNamed(this.#who.name);
    const { from, to } = this.#who;
    await mkdir(this.#given, { recursive: true, mode: 0o700 });
    // From anywhere: another service of this machine may have the same numbers.
    const count = to - from + 1;
    const start = randomInt(count);
    for (let n = 0; n < count; n++) {
      const uid = from + ((start + n) % count);
      const own = join(this.#given, String(uid));
      if ((await makeNew(own)) && (await register(uid, own))) return { uid, gid: uid };
    }
    throw new Error(`All numbers from ${from} to ${to} were given to deployments: widen THREADMILL_DEPLOY_USER.`);
  }
}

const isRoot = (): boolean => process.getuid?.() === 0;

const makeNew = (folder: string): Promise<boolean> =>
  mkdir(folder).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );

/** Which number belongs to which service of this machine, until it is started anew: a link to what the service has noted. */
const REGISTRY = "/run/threadmill/uids";

/**
 * Whether a number is this service's on this machine from now on. One whose service is gone with its data folder is free. Where
 * nothing can be noted, as in a container with a read-only file system, the service is taken for the only one.
 */
async function register(uid: number, own: string): Promise<boolean> {
  const entry = join(REGISTRY, String(uid));
  for (let tries = 0; tries < 3; tries++) {
    try {
      await mkdir(REGISTRY, { recursive: true, mode: 0o700 });
      await symlink(own, entry);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") return true;
    }
    if (await ownerOf(entry)) return (await readlink(entry)) === own;
    await rm(entry, { force: true });
  }
  return false;
}

const ownerOf = (path: string): Promise<SystemUser | undefined> =>
  stat(path).then(
    ({ uid, gid }) => ({ uid, gid }),
    () => undefined,
  );

/** Gives a folder with all that is in it to a user. The program follows no links, also none that are put in its way. */
export async function give(path: string, { uid, gid }: SystemUser): Promise<void> {
  await run("chown", ["-R", "-h", "-P", `${uid}:${gid}`, "--", path]);
}

/** Gives a folder of root's to a user. */
export async function giveOnce(path: string, user: SystemUser): Promise<void> {
  if ((await ownerOf(path))?.uid === 0) await give(path, user);
}

/** Removes what others may change meanwhile: Node's own way of doing it could be led elsewhere by a link. */
export async function removeTree(path: string): Promise<void> {
  if (!isRoot()) return rm(path, { recursive: true, force: true, maxRetries: 3 });
  // What is still being written into it makes it fail once.
  for (let tries = 1; ; tries++) {
    try {
      await run("rm", ["-rf", "--", path]);
      return;
    } catch (error) {
      if (tries === 3) throw error;
      await delay(100);
    }
  }
}

/** Makes an empty file as a user, unless there is one: a link could lead to where that user may not write. */
export async function makeEmptyFile(file: string, user: SystemUser): Promise<void> {
  const args = ["-c", 'umask 077; set -C; : > "$0"', file];
  await run("/bin/sh", args, { ...user, cwd: "/", env: {} }).catch(() => undefined);
}

/** Names of a folder; none of one that is not there. */
export const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

async function userNamed(name: string): Promise<SystemUser> {
  const of = async (flag: string) => Number((await run("id", [flag, "--", name])).stdout);
  return { uid: await of("-u"), gid: await of("-g") };
}

/**
 * Tries it: a folder above may be closed, the system may have no such user, a container may not allow it.
 *
 * @throws Error when it could not be tried, such as for want of memory
 */
async function whyNot(who: DeployUser, paths: readonly string[]): Promise<string | undefined> {
  const user = "name" in who ? await userNamed(who.name).catch(() => undefined) : { uid: who.from, gid: who.from };
  if (!user) return `the system has no user ${JSON.stringify("name" in who ? who.name : "")}`;
  for (const path of paths) {
    const look = `fs.accessSync(${JSON.stringify(path)})`;
    try {
      await run(process.execPath, ["-e", look], { ...user, cwd: "/", env: {} });
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code === 1 || code === "EACCES" || code === "EPERM" || code === "EINVAL" || code === "ENOENT")
        return `the user ${user.uid} cannot run Node or reach ${path}`;
      throw error;
    }
  }
  return undefined;
}
