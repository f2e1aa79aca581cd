import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

/** Kept between runs of the tests, and by CI with node_modules. */
const CACHE = join(import.meta.dirname, "../../node_modules/.cache/threadmill-tests");

/** Installing takes seconds with a warm cache of npm. */
const INSTALL_TIMEOUT_MS = 180_000;

/**
 * A `node_modules` with exactly these packages, installed by npm once and kept.
 *
 * @param dependencies versions by name
 * @returns its path
 * @throws Error with npm's words when the registry does not answer
 */
export async function installed(dependencies: Record<string, string>): Promise<string> {
  const manifest = JSON.stringify({ private: true, dependencies });
  const folder = join(CACHE, createHash("sha256").update(manifest).digest("hex").slice(0, 16));
  if (!existsSync(folder)) {
    mkdirSync(CACHE, { recursive: true });
    const making = mkdtempSync(join(CACHE, "making-"));
    writeFileSync(join(making, "package.json"), manifest);
    const npm = join(dirname(process.execPath), "npm");
    await promisify(execFile)(existsSync(npm) ? npm : "npm", ["install", "--no-audit", "--no-fund"], {
      cwd: making,
      timeout: INSTALL_TIMEOUT_MS,
    });
    // Another test file may have been faster: its folder is as good.
    if (existsSync(folder)) rmSync(making, { recursive: true });
    else renameSync(making, folder);
  }
  return join(folder, "node_modules");
}
