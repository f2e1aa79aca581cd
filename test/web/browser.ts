import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Locator, type Page, type Request } from "playwright-core";
import { describe, expect, inject, TestRunner } from "vitest";
import { startService, type TestService } from "../support/service.ts";

/** Suites that need a browser; skipped where there is none (see support/found.ts). */
export const describeInBrowser = describe.skipIf(!inject("chromium"));

export const THEMES = ["light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const ROOT = resolve(import.meta.dirname, "../..");

/** Nothing that a browser does by itself: no request may leave for another host. */
export const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** How pages write the time of what a test did before it opened them. */
export const AGO = /^(just now|\d+ (sec|min)\. ago)$/;

/** A desk and a phone, in pixels. */
const SIZES = [
  [1280, 800],
  [390, 844],
] as const;

export interface OpenOptions {
  theme?: Theme;
  /** On a phone. */
  narrow?: boolean;
  /** Signed in with this key. */
  key?: string;
  /** Answers that are meant to fail, by status: the browser writes a line to the console for each. */
  refused?: readonly number[];
  /** Code of the page is meant to break a content security policy: the browser writes a line for that, too. */
  blocked?: boolean;
  /** The connection is meant to break: the browser writes a line for that, too. */
  loses?: boolean;
  /** Without what browsers offer only to pages that are loaded over HTTPS or from the own machine. */
  plain?: boolean;
}

/** A whole service on a port, and a browser that looks at it. */
export class WebTest {
  readonly service: TestService;
  /** Where the service is, without a slash at the end. */
  readonly url: string;
  readonly #browser: Browser;
  readonly #context: BrowserContext;
  readonly #problems: string[] = [];
  /** Requests without a complete response. */
  readonly #open = new Set<Request>();

  private constructor(service: TestService, url: string, browser: Browser, context: BrowserContext) {
    this.service = service;
    this.url = url;
    this.#browser = browser;
    this.#context = context;
  }

  static async start(options: { config?: string; env?: Record<string, string> } = {}): Promise<WebTest> {
    const { config = "examples/langgraph.json", env } = options;
    const service = await startService({ database: "sqlite", config, env });
    const browser = await chromium.launch({ executablePath: inject("chromium"), args: FLAGS });
    const context = await browser.newContext({
      reducedMotion: "reduce",
      permissions: ["clipboard-read", "clipboard-write"],
    });
    return new WebTest(service, await service.listen(), browser, context);
  }

  /**
   * A page in a browser that remembers nothing but the files of the app, which saves two thirds of the time.
   *
   * @param path below /app: `/settings`
   */
  async open(path: string, options: OpenOptions = {}): Promise<Page> {
    const {
      theme = "light",
      narrow = false,
      key,
      refused = [],
      blocked = false,
      loses = false,
      plain = false,
    } = options;
    const [width, height] = SIZES[narrow ? 1 : 0];
    const page = await this.#context.newPage();
    const session = await this.#context.newCDPSession(page);
    await session.send("Storage.clearDataForOrigin", { origin: this.url, storageTypes: "cookies,local_storage" });
    await session.detach();
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: theme });
    if (key) await page.addInitScript(`sessionStorage.setItem("threadmill.key", ${JSON.stringify(key)})`);
    if (plain) await page.addInitScript("delete Navigator.prototype.clipboard; delete Crypto.prototype.randomUUID");
    page.on("console", (message) => {
      const isExpected =
        refused.some((status) => message.text().includes(`status of ${status}`)) ||
        (blocked && /Content Security Policy/.test(message.text())) ||
        (loses && /net::ERR_(INTERNET_DISCONNECTED|NETWORK_CHANGED)/.test(message.text()));
      if (!isExpected) this.#problems.push(`${path}: ${message.type()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.#problems.push(`${path}: ${error}`));
    page.on("requestfinished", (request) => this.#open.delete(request));
    page.on("requestfailed", (request) => this.#open.delete(request));
    page.on("request", (request) => {
      this.#open.add(request);
      if (!request.url().startsWith(this.url) && !/^(data|blob):/.test(request.url()))
        this.#problems.push(`${path}: a request to another host: ${request.url()}`);
    });
    await page.goto(`${this.url}/app${path}`);
    return page;
  }

  /**
   * For `afterEach`: closes the pages, which would go on asking the service and drawing, and fails when one of them wrote to the console or
   * asked another host. After a test that failed it says what the pages show, and which requests are not answered.
   */
  async closePages(): Promise<void> {
    const problems = this.#problems.splice(0);
    if (TestRunner.getCurrentTest()?.result?.state === "fail") {
      const shown = this.#context.pages().map(async (page) => `${page.url()}: ${await page.ariaSnapshot()}`);
      problems.push(...(await Promise.all(shown)), ...[...this.#open].map((request) => `open: ${request.url()}`));
    }
    this.#open.clear();
    await Promise.all(this.#context.pages().map((page) => page.close()));
    this.#problems.length = 0;
    expect(problems).toEqual([]);
  }

  async stop(): Promise<void> {
    await this.#browser.close();
    await this.service.stop();
  }
}

const WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];

/** Fails when the page, as it is now, breaks a rule of WCAG 2.1 A or AA, or one of those that are named. */
export async function expectAccessible(page: Page, rules = WCAG): Promise<void> {
  // What appears, or changes its colour, has no contrast meanwhile. It is not waited for: what is out of view may never end.
  await page.evaluate(
    "document.getAnimations().filter((a) => a.effect.getTiming().iterations === 1).forEach((a) => a.finish())",
  );
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe.source);
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(rules)}, resultTypes: ["violations"] })`,
  )) as { violations: { id: string; help: string; nodes: { html: string; failureSummary: string }[] }[] };
  expect(
    violations.map(({ id, help, nodes }) => ({
      id,
      help,
      where: nodes.map((node) => [node.html, node.failureSummary]),
    })),
  ).toEqual([]);
}

/** Waits for the dot directly before a name, which is read by nobody, and returns its hue. */
export async function hueOf(within: Page | Locator, name: string): Promise<string> {
  const dot = within.locator(`xpath=.//*[@aria-hidden and contains(@style, "--hue") and contains(.., "${name}")]`);
  return (await dot.first().getAttribute("style"))?.replace(/\D/g, "") ?? "";
}

/** Where pictures go: `SCREENSHOTS=docs/images npm run test:all -- test/web` renews those of the docs. None are taken otherwise. */
export const PICTURES = process.env.SCREENSHOTS && resolve(ROOT, process.env.SCREENSHOTS);

/**
 * Checks a page for WCAG A and AA at 1280 and 390 pixels in both themes (in the second one what colours decide), and takes pictures
 * of it there: `{name}-{width}-{theme}.png`.
 *
 * @param ready waits for what makes the page whole, and may open things
 */
export async function takePictures(
  web: WebTest,
  name: string,
  path: string,
  ready: (page: Page) => Promise<unknown>,
  options: OpenOptions = {},
): Promise<void> {
  if (PICTURES) mkdirSync(PICTURES, { recursive: true });
  const page = await web.open(path, options);
  await ready(page);
  await page.evaluate("document.fonts.ready");
  for (const [width, height] of SIZES)
    for (const theme of THEMES) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: theme });
      await page.locator(`html[data-theme=${theme}]`).waitFor();
      await expectAccessible(page, theme === THEMES[0] ? WCAG : ["color-contrast"]);
      if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name}-${width}-${theme}.png`) });
    }
  await page.close();
}
