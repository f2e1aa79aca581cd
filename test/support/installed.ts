import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { madeOnce } from "./made-once.ts";

const LIMIT_MS = 5 * 60_000;

/**
 * A `node_modules` with exactly these packages, which npm has installed: for projects with packages of their own, and for clients that
 * cannot be among our development dependencies.
 *
 * @param what as sentences begin with it: "The official JavaScript CLI"
 * @param dependencies versions by name
 * @param flags more flags of `npm install`
 * @returns its path; undefined when npm cannot install them, which is said
 */
export async function installed(
  what: string,
  dependencies: Record<string, string>,
  flags: readonly string[] = [],
): Promise<string | undefined> {
  const manifest = JSON.stringify({ private: true, dependencies });
  const folder = await madeOnce({
    client: what,
    folder_prefix: "npm",
    made_of: manifest,
    async make(cwd) {
      writeFileSync(join(cwd, "package.json"), manifest);
      const args = ["install", "--no-audit", "--no-fund", "--loglevel", "error", ...flags];
      await promisify(execFile)("npm", args, { cwd, timeout: LIMIT_MS }).catch((error: { stderr?: string }) => {
        const [reason] = (error.stderr || String(error)).split("\n");
        throw new Error(`npm could not install ${manifest} (${reason}). It needs npm and its registry.`);
      });
    },
  });
  return folder && join(folder, "node_modules");
}
