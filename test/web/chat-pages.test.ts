import { readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { build, type Plugin, type Rollup } from "vite";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { installed } from "../support/installed.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { startService, type TestService } from "../support/service.ts";
import { FLAGS } from "./browser.ts";

const packages = await installed("pages with the official hooks and assistant-ui", {
  "@assistant-ui/react": "0.15.22",
  // 0.14.26 requires a version of @assistant-ui/react-langchain that does not exist.
  "@assistant-ui/react-langgraph": "0.14.25",
  "@assistant-ui/react-langchain": "0.0.28",
  "@langchain/react": "1.1.0",
  "@langchain/langgraph-sdk": "1.15.0",
  "@langchain/core": "1.4.0",
  "@langchain/svelte": "1.0.29",
  react: "19.3.1",
  "react-dom": "19.3.1",
  svelte: "5.57.3",
});

const folder = join(import.meta.dirname, "chat-pages");
const PAGES = ["chat.jsx", "assistant-ui.jsx", "svelte.js"] as const;
type PageFile = (typeof PAGES)[number];
type Params = Record<string, string>;

const HOOKS: [string, PageFile, Params][] = [
  ["useStream of @langchain/langgraph-sdk/react", "chat.jsx", { hook: "runs" }],
  ["useStream of @langchain/react", "chat.jsx", { hook: "threads", transport: "sse" }],
  ["useStream of @langchain/react over a WebSocket", "chat.jsx", { hook: "threads", transport: "websocket" }],
  ["useStream of @langchain/svelte", "svelte.js", { transport: "sse" }],
  ["useStream of @langchain/svelte over a WebSocket", "svelte.js", { transport: "websocket" }],
];
const ADAPTERS: [string, Params][] = [
  ["@assistant-ui/react-langgraph", { adapter: "langgraph" }],
  ["@assistant-ui/react-langchain", { adapter: "langchain" }],
];

/** Compiles components, and modules with runes, with the compiler of the installed package. */
async function svelteOf(packages: string): Promise<Plugin> {
  const { compile, compileModule } = await import(join(packages, "svelte/src/compiler/index.js"));
  return {
    name: "svelte",
    transform(code, filename) {
      if (filename.endsWith(".svelte")) return compile(code, { filename }).js;
      if (filename.endsWith(".svelte.js")) return compileModule(code, { filename }).js;
      return undefined;
    },
  };
}

const ANSWER = "Order 1042 (walking boots) is shipped. It should arrive on Thursday.";

describe.skipIf(!packages || !inject("chromium"))("A page", () => {
  let service: TestService;
  let api: string;
  let project: TestProject;
  let server: Server;
  let browser: Browser;
  const problems: string[] = [];

  beforeAll(async () => {
    service = await startService({
      database: "sqlite",
      config: "test/graphs/compat/langgraph.json",
      inline: false,
      // A page that is busy for a while shows several pieces at once.
      env: { EXAMPLES_DELAY_MS: "60" },
    });
    api = await service.listen();
    const sources = [...PAGES, "chat.svelte", "ask-again.svelte"];
    project = createProject(
      Object.fromEntries(sources.map((file) => [file, readFileSync(join(folder, file), "utf8")])),
    );
    rmSync(join(project.folder, "node_modules"));
    symlinkSync(packages as string, join(project.folder, "node_modules"), "junction");
    const { output } = (await build({
      logLevel: "silent",
      configFile: false,
      root: project.folder,
      plugins: [await svelteOf(packages as string)],
      build: {
        write: false,
        minify: false,
        rolldownOptions: { input: PAGES.map((file) => join(project.folder, file)) },
      },
    })) as Rollup.RollupOutput;
    const chunks = output.filter((file) => file.type === "chunk");
    const entryOf = (page: string) => chunks.find(({ facadeModuleId }) => facadeModuleId?.endsWith(page))?.fileName;
    server = createServer(({ url = "" }, response) => {
      const { pathname } = new URL(url, "http://localhost");
      const code = chunks.find(({ fileName }) => pathname === `/${fileName}`)?.code;
      response.setHeader("content-type", code ? "text/javascript" : "text/html");
      const script = `<script type="module" src="/${entryOf(pathname)}"></script>`;
      response.end(code ?? `<!doctype html><div id="root"></div>${script}`);
    }).listen(0, "127.0.0.1");
    browser = await chromium.launch({ executablePath: inject("chromium"), args: FLAGS });
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
    await service?.stop();
    project?.drop();
  });
  afterEach(async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
    expect(problems.splice(0)).toEqual([]);
  });

  async function open(name: PageFile, params: Params, assistant: string): Promise<Page> {
    const page = await browser.newPage();
    page.on("pageerror", (error) => problems.push(String(error)));
    const { port } = server.address() as AddressInfo;
    await page.goto(`http://localhost:${port}/${name}?${new URLSearchParams({ ...params, api, assistant })}`);
    return page;
  }

  async function send(page: Page, text: string): Promise<void> {
    await page.getByLabel("Message").fill(text);
    await page.getByRole("button", { name: "Send" }).click();
  }

  const refund = (page: Page) => page.getByRole("button", { name: "Refund $129.00 for order 1042 (walking boots)?" });

  describe.each(HOOKS)("with %s", (_, file, params) => {
    const typesOf = (page: Page) =>
      page.locator("li").evaluateAll((items) => items.map((item) => item.getAttribute("data-type")));
    const status = (page: Page, text: string) => page.getByRole("status").filter({ hasText: text }).waitFor();
    const statusOf = async (run: string) => (await service.request("GET", run)).body.status;

    /** A page whose run waits until it is cancelled. */
    async function openWaiting(): Promise<{ page: Page; run: string }> {
      const page = await open(file, params, "waiting");
      await send(page, "Wait.");
      await expect.poll(() => new URL(page.url()).hash).not.toBe("");
      const runs = `/threads/${new URL(page.url()).hash.slice(1)}/runs`;
      await expect.poll(async () => (await service.request("GET", runs)).body[0]?.status).toBe("running");
      await status(page, "working");
      // Until the response arrives, a hook cannot stop the run, or join it after a reload.
      await page.waitForFunction("window.isRunKnown");
      return { page, run: `${runs}/${(await service.request("GET", runs)).body[0].run_id}` };
    }

    it("shows an answer piece by piece, and the conversation after a reload", async () => {
      const page = await open(file, params, "support_desk");
      await send(page, "Where is my order 1042?");
      await page.getByText(ANSWER).waitFor();
      await status(page, "ready");
      await expect.poll(() => page.evaluate("window.lengths.size")).toBeGreaterThan(5);
      await expect.poll(() => typesOf(page)).toEqual(["human", "ai", "tool", "ai"]);
      await page.reload();
      await page.getByText(ANSWER).waitFor();
      await status(page, "ready");
      await expect.poll(() => typesOf(page)).toEqual(["human", "ai", "tool", "ai"]);
    });

    it("shows an interrupt, even after a reload, and continues with the response", async () => {
      const page = await open(file, params, "support_desk");
      await send(page, "refund order 1042");
      await refund(page).waitFor();
      await page.reload();
      await refund(page).click();
      await page.getByText("is on its way back to you").waitFor();
      await status(page, "ready");
      expect(await refund(page).count()).toBe(0);
    });

    it("is connected to its run again after a reload", async () => {
      const { page, run } = await openWaiting();
      await page.reload();
      await status(page, "working");
      await service.request("POST", `${run}/cancel`);
      await status(page, "ready");
    });

    it("stops its run", async () => {
      const { page, run } = await openWaiting();
      await page.getByRole("button", { name: "Stop" }).click();
      await status(page, "ready");
      await expect.poll(() => statusOf(run)).toBe("interrupted");
    });

    it("asks again from the checkpoint before a message", async () => {
      const page = await open(file, params, "support_desk");
      await send(page, "Where is my order 1042?");
      await page.getByText(ANSWER).waitFor();
      await status(page, "ready");
      await page.getByRole("button", { name: "Ask again" }).click();
      await page.getByText("Order 1043 (rain jacket)").waitFor();
      await status(page, "ready");
      await page.reload();
      await page.getByText("Order 1043 (rain jacket)").waitFor();
      expect(await page.getByText(ANSWER).count()).toBe(0);
      // For each message, useStream of @langchain/react and svelte names the checkpoint before the newest one.
      const kept = params.hook !== "runs" ? ["human", "ai", "tool"] : [];
      await expect.poll(() => typesOf(page)).toEqual([...kept, "human", "ai", "tool", "ai"]);
    });

    it("shows why a run failed", async () => {
      const page = await open(file, params, "failing");
      await send(page, "Fail.");
      await page.getByRole("alert").filter({ hasText: "There is no color" }).waitFor();
      await status(page, "ready");
    });
  });

  describe.each(ADAPTERS)("with assistant-ui and %s", (_, params) => {
    it("shows an answer and an interrupt, and continues with the response", async () => {
      const page = await open("assistant-ui.jsx", params, "support_desk");
      await send(page, "Where is my order 1042?");
      await page.getByText(ANSWER).waitFor();
      await send(page, "refund order 1042");
      await refund(page).click();
      await page.getByText("is on its way back to you").waitFor();
    });
  });
});
