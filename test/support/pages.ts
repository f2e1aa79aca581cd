import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");

/** Builds the pages of the web app when their sources are newer than what is there. */
export function buildPages(): void {
  execFileSync(process.execPath, [resolve(ROOT, "web/build.ts")], {
    cwd: ROOT,
    stdio: ["ignore", "ignore", "inherit"],
  });
}
