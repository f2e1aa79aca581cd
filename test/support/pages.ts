import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");

/** Builds the pages of the web app when their sources are newer than what is there: before tests, which read them at the same time. */
export default function buildPages(): void {
  const build = resolve(ROOT, "web/build.ts");
  // Copies of the repository for mutants have no pages.
  if (!existsSync(build)) return;
  execFileSync(process.execPath, [build], {
    cwd: ROOT,
    stdio: ["ignore", "ignore", "inherit"],
  });
}
