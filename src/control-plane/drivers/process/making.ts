import { randomBytes } from "node:crypto";
import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isAlive, killGroup, type ProcessIdentity, startOf } from "./process-identity.ts";
import { namesIn, removeTree, type SystemUser } from "./system-users.ts";

/** A build in the making: a folder that goes away unless it is moved to where finished builds are. */
export interface Making {
  /** What is to become the build; the service's own until it is given away. */
  source: string;
  /** The home folder of its commands. */
  home: string;
  /** Notes a command that has been started, so that it can be ended after a crash of this process. */
  onStart(pid: number): Promise<void>;
  drop(): Promise<void>;
}

const COMMAND = "command.json";

/** A folder for a build of this process, whose commands run as this user. */
export async function beginMaking(folder: string, user: SystemUser | undefined): Promise<Making> {
  const own = `${process.pid}-${await startOf(process.pid)}-${randomBytes(16).toString("hex")}`;
  const root = join(folder, own);
  const [source, home] = [join(root, "source"), join(root, "home")];
  await mkdir(root, { recursive: true });
  await chmod(root, 0o711);
  await mkdir(source, { mode: 0o700 });
  await mkdir(home, { mode: 0o700 });
  if (user) await chown(home, user.uid, user.gid);
  return {
    source,
    home,
    async onStart(pid) {
      const started = await startOf(pid);
      if (started !== undefined) await writeFile(join(root, COMMAND), JSON.stringify({ pid, started }));
    },
    drop: () => removeTree(root),
  };
}

/** Removes what builds of processes that are gone have left, and ends the commands that they were at. */
export async function removeHalfBuilds(folder: string): Promise<void> {
  for (const name of await namesIn(folder)) {
    const [, pid, started = ""] = /^(\d+)-(.+)-[0-9a-f]+$/.exec(name) ?? [];
    if (pid !== undefined && (await isAlive({ pid: Number(pid), started }))) continue;
    const command = await readFile(join(folder, name, COMMAND), "utf8").catch(() => undefined);
    const left = command === undefined ? undefined : (parse(command) as ProcessIdentity | undefined);
    if (left && (await isAlive(left))) killGroup(left.pid);
    await removeTree(join(folder, name));
  }
}

/** A crash may have cut it short. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
