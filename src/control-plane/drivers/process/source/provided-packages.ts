import { existsSync } from "node:fs";
import { chmod, mkdir, readlink, realpath, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";

/** What a source that brings no packages may use all the same. */
const PROVIDED = ["@langchain/langgraph", "@langchain/core"];

/**
 * Links packages of Threadmill's own into a `node_modules` above all builds. Node looks there last, so whatever a source has
 * installed for itself comes first.
 *
 * @param program a file of Threadmill, from which its packages are found
 */
export async function providePackages(builds: string, program: string): Promise<void> {
  for (const name of PROVIDED) {
    const link = join(builds, "node_modules", name);
    const target = await realpath(findPackage(name, dirname(program)));
    if ((await readlink(link).catch(() => undefined)) === target) continue;
    for (const folder of [join(builds, "node_modules"), dirname(link)]) {
      await mkdir(folder, { recursive: true });
      // Whatever the umask: instances may be other users.
      await chmod(folder, 0o755);
    }
    // Instances that start right now find the old one or the new one, and never none.
    const fresh = `${link}.${process.pid}`;
    await rm(fresh, { force: true });
    await symlink(target, fresh, "junction");
    await rename(fresh, link);
  }
}

function findPackage(name: string, from: string): string {
  const found = join(from, "node_modules", name);
  if (existsSync(found)) return found;
  if (dirname(from) === from) throw new Error(`${name} is not installed beside Threadmill.`);
  return findPackage(name, dirname(from));
}
