import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { chmod, lchown, mkdir, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
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
    if (process.getuid?.() !== 0) return new SystemUsers(folders, who, "the service is not root");
    const control = dirname(folders.data);
    for (const folder of [control, folders.builds, folders.making, folders.data, folders.npm_cache]) {
      await mkdir(folder, { recursive: true, mode: WAY_MODE });
      await chmod(folder, WAY_MODE);
    }
    await chmod(dirname(control), WAY_MODE);
    return new SystemUsers(folders, who, await whyNot(who, [program, folders.data]));
  }

  /** Whom a deployment runs as, with its data folder made; undefined: as the service. */
  of(deployment_id: string): Promise<SystemUser | undefined> {
    if (this.missing !== undefined) return Promise.resolve(undefined);
    const known = this.#known.get(deployment_id) ?? this.#find(deployment_id);
    this.#known.set(deployment_id, known);
    known.catch(() => this.#known.delete(deployment_id));
    return known;
  }

  /** The owner of its data folder, so that a service that starts anew finds the same one. */
  async #find(deployment_id: string): Promise<SystemUser> {
    const folder = dataFolder(this.#folders, deployment_id);
    const owner = await ownerOf(folder);
    if (owner === undefined) await mkdir(folder, { mode: 0o700 });
    const user = await this.#choose(owner);
    if (user.uid !== owner) await give(folder, user);
    return user;
  }

  async #choose(owner: number | undefined): Promise<SystemUser> {
    if ("name" in this.#who) return userNamed(this.#who.name);
    const { from, to } = this.#who;
    if (owner !== undefined && owner >= from && owner <= to) return { uid: owner, gid: owner };
    const { data } = this.#folders;
    const taken = new Set(await Promise.all((await readdir(data)).map((name) => ownerOf(join(data, name)))));
    for (let tries = 0; tries <= to - from; tries++) {
      // Not the next one: files of a deployment that is gone may have been left outside of its folders.
      const uid = randomInt(from, to + 1);
      if (!taken.has(uid)) return { uid, gid: uid };
    }
    throw new Error(`No number from ${from} to ${to} is free for a deployment: widen THREADMILL_DEPLOY_USER.`);
  }
}

const ownerOf = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ uid }) => uid,
    () => undefined,
  );

/** Gives a folder with all that is in it to a user. Links are not followed. */
export async function give(path: string, { uid, gid }: SystemUser): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) await give(child, { uid, gid });
    else await lchown(child, uid, gid);
  }
  // Last: from here on they may change it.
  await lchown(path, uid, gid);
}

/** Gives a folder to a user, unless it is theirs. */
export async function giveOnce(path: string, user: SystemUser): Promise<void> {
  if ((await ownerOf(path)) !== user.uid) await give(path, user);
}

async function userNamed(name: string): Promise<SystemUser> {
  const of = async (flag: string) => Number((await run("id", [flag, "--", name])).stdout);
  return { uid: await of("-u"), gid: await of("-g") };
}

/** Tries it: a folder above may be closed, the system may have no such user, a container may not allow it. */
async function whyNot(who: DeployUser, paths: readonly string[]): Promise<string | undefined> {
  const user = "name" in who ? await userNamed(who.name).catch(() => undefined) : { uid: who.from, gid: who.from };
  if (!user) return `the system has no user ${JSON.stringify("name" in who ? who.name : "")}`;
  for (const path of paths) {
    const look = `fs.accessSync(${JSON.stringify(path)})`;
    const failed = await run(process.execPath, ["-e", look], { ...user, cwd: "/", env: {} }).then(
      () => false,
      () => true,
    );
    if (failed) return `the user ${user.uid} cannot run Node or reach ${path}`;
  }
  return undefined;
}
