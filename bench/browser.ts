import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { findChromium } from "../test/support/found.ts";

const ROOT = resolve(import.meta.dirname, "..");

/** Checks a condition in each frame. The scripts are texts because the content security policy of the pages forbids eval. */
export const until = (condition: string) => `new Promise((done) => {
  requestAnimationFrame(function check() {
    if (${condition}) done();
    else requestAnimationFrame(check);
  });
})`;

/** Opens a page in a new browser context and waits until a condition holds in one of its frames. */
export async function openPage(browser: Browser, address: string, condition: string): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto(address, { waitUntil: "commit" });
  await page.evaluate(until(condition));
  return page;
}

/** Software rendering, and no background requests of the browser. */
const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
];

/**
 * Builds the web app if its sources are newer, then starts Chromium. With its user interface, Chromium requests 400 files of its own for
 * each window, while the measured page loads.
 *
 * @throws Error when Chromium is not in the PATH
 */
export async function startBrowser(): Promise<Browser> {
  const executablePath = findChromium();
  if (!executablePath)
    throw new Error("Chromium is not in the PATH: install it (Debian: apt install chromium-headless-shell).");
  execFileSync(process.execPath, [join(ROOT, "web/build.ts")], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  return chromium.launch({ executablePath, args: CHROMIUM_FLAGS });
}
