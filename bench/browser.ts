import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { type Browser, chromium } from "playwright-core";

const ROOT = resolve(import.meta.dirname, "..");

/** No graphics card is asked for frames, and nothing is fetched that no page asked for. */
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];

/**
 * A Chromium for what is measured in pages, after building the pages when their sources are newer.
 *
 * @throws Error where there is no Chromium in the PATH
 */
export async function startBrowser(): Promise<Browser> {
  const executablePath = (process.env.PATH ?? "")
    .split(delimiter)
    .flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name)))
    .find((file) => existsSync(file));
  if (!executablePath) throw new Error("This needs Chromium in the PATH (Debian: apt install chromium).");
  execFileSync(process.execPath, [join(ROOT, "web/build.ts")], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  return chromium.launch({ executablePath, args: FLAGS });
}
