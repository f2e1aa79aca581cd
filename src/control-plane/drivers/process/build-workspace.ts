import { randomBytes } from "node:crypto";
import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isAlive, killGroup, type ProcessIdentity, startOf } from "./process-identity.ts";
import { listNames, removeTree, type SystemUser } from "./system-users.ts";

export interface BuildWorkspace {
  /** Folder of the source, which becomes the folder of the finished build. The deployment's user owns it when the build commands run. */
  source: string;
  /** Home folder of the build's commands. */
  home: string;
  /** Records the pid of a command, so that the command can be killed after a crash of this process. */
  onStart(pid: number): Promise<void>;
  remove(): Promise<void>;
}

const COMMAND_FILE = "command.json";

/** @param user system user that runs the build's commands */
export async function createBuildWorkspace(folder: string, user: SystemUser | undefined): Promise<BuildWorkspace> {
  const root = join(folder, `${process.pid}-${await startOf(process.pid)}-${randomBytes(16).toString("hex")}`);
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
      if (started !== undefined) await writeFile(join(root, COMMAND_FILE), JSON.stringify({ pid, started }));
    },
    remove: () => removeTree(root),
  };
}

/** Removes the workspaces of service processes that have ended, and kills their build commands. */
export async function removeAbandonedBuilds(folder: string): Promise<void> {
  for (const name of await listNames(folder)) {
    const [, pid, started = ""] = /^(\d+)-(.+)-[0-9a-f]+$/.exec(name) ?? [];
    if (pid !== undefined && (await isAlive({ pid: Number(pid), started }))) continue;
    const command = await readFile(join(folder, name, COMMAND_FILE), "utf8").catch(() => undefined);
    const running = command === undefined ? undefined : (parse(command) as ProcessIdentity | undefined);
    if (running && (await isAlive(running))) killGroup(running.pid);
    await removeTree(join(folder, name));
  }
}

/** Returns undefined when a crash has truncated the file. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
