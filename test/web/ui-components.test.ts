import { rmSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { build, type Rollup } from "vite";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import { installed } from "../support/installed.ts";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";
import { startService, type TestService } from "../support/service.ts";
import { FLAGS } from "./browser.ts";

const packages = await installed("The bundler of UI components", {
  "@langchain/langgraph-ui": "2.0.0",
  "@langchain/langgraph": "1.7.3",
  "@langchain/core": "1.4.0",
  react: "19.3.1",
});

const COMPONENTS = `
import "./ui.css";
import { useState } from "react";
const Weather = ({ city }) => {
  const [degrees, setDegrees] = useState(20);
  return <button className="warm" onClick={() => setDegrees(degrees + 1)}>{city}: {degrees}</button>;
};
export default { weather: Weather };
`;

const COLOR = `getComputedStyle(document.querySelector("#root > div").shadowRoot.querySelector("button")).color`;

const withUi = (fields: object = {}): TestProject => {
  const project = createProject({
    "agent.ts": oneNodeGraph("hello"),
    "ui.tsx": COMPONENTS,
    "ui.css": ".warm { color: rgb(255, 0, 0); }",
    "langgraph.json": JSON.stringify({ graphs: { agent: "./agent.ts:graph" }, ui: { agent: "./ui.tsx" }, ...fields }),
  });
  rmSync(join(project.folder, "node_modules"));
  symlinkSync(packages as string, join(project.folder, "node_modules"), "junction");
  return project;
};

describe.runIf(packages)("UI components", () => {
  let project: TestProject;
  let service: TestService;
  let pages: Server;
  let browser: Browser;

  const start = async (fields?: object, env: Record<string, string> = {}) => {
    project = withUi(fields);
    service = await startService({ database: "sqlite", config: project.config, env });
  };
  afterEach(async () => {
    await service?.stop();
    project?.drop();
  });
  const post = (namespace: string, body: unknown) => service.request("POST", `/ui/${namespace}`, body);

  describe.skipIf(!inject("chromium"))("in a page of another origin", () => {
    beforeAll(async () => {
      const bundle = (await build({
        logLevel: "silent",
        configFile: false,
        build: { write: false, rolldownOptions: { input: resolve(import.meta.dirname, "chat-pages/ui-component.js") } },
      })) as Rollup.RollupOutput;
      const script = bundle.output.find(({ type }) => type === "chunk") as Rollup.OutputChunk;
      pages = createServer(({ url }, response) => {
        const isScript = url === "/page.js";
        response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
        response.end(
          isScript ? script.code : '<!doctype html><div id="root"></div><script type="module" src="/page.js"></script>',
        );
      }).listen(0, "127.0.0.1");
      browser = await chromium.launch({ executablePath: inject("chromium"), args: FLAGS });
    });
    afterAll(async () => {
      await browser?.close();
      pages?.close();
    });

    it.each<[string, Record<string, string>]>([
      ["an open server", {}],
      ["a server with keys", { API_KEYS: "a-key" }],
      ["a server below a prefix", { MOUNT_PREFIX: "/agents" }],
    ])("are loaded by the official client from %s, with styles and state", async (_, env) => {
      await start({}, env);
      const page = await browser.newPage();
      const { port } = pages.address() as AddressInfo;
      const api = await service.listen();
      await page.goto(`http://localhost:${port}/#${new URLSearchParams({ api, key: env.API_KEYS ?? "" })}`);
      const button = page.getByRole("button", { name: "Paris: 20" });
      await button.click();
      await page.getByRole("button", { name: "Paris: 21" }).waitFor();
      await expect.poll(() => page.evaluate(COLOR)).toBe("rgb(255, 0, 0)");
      await page.close();
    });
  });

  it("are HTML that names its files, in which the name of a component cannot become code", async () => {
    await start();
    const { status, headers, text } = await post("agent", { name: `"'><script>alert(1)</script>` });
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(/^text\/html/);
    expect(text.match(/<script/g)).toHaveLength(1);
    expect(text).toContain(
      '.render(&quot;\\&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;, &quot;{{shadowRootId}}&quot;)"',
    );
    expect((await service.request("GET", "/ui/agent/entrypoint.css")).text).toContain(".warm");
  });

  it("are refused with a reason: unknown names, files and paths, bodies without a name", async () => {
    await start();
    expect(await post("other", { name: "weather" })).toMatchObject({
      status: 404,
      body: { detail: 'UI components "other" not found: add them to "ui" in langgraph.json.' },
    });
    expect((await post("agent", {})).status).toBe(422);
    expect((await post("agent", { name: 7 })).status).toBe(422);
    for (const file of ["missing.js", "..%2Fschemas.json", "%2e%2e", "..%5c..%5cagent.ts"])
      expect((await service.request("GET", `/ui/agent/${file}`)).status).toBe(404);
  });

  it("need a key, their files do not", async () => {
    await start({}, { API_KEYS: "a-key" });
    expect((await post("agent", { name: "weather" })).status).toBe(401);
    expect((await service.request("GET", "/ui/agent/entrypoint.js")).status).toBe(200);
  });

  it("are not served with http.disable_ui", async () => {
    await start({ http: { disable_ui: true } });
    expect((await post("agent", { name: "weather" })).status).toBe(404);
    expect((await service.request("GET", "/ui/agent/entrypoint.js")).status).toBe(404);
  });

  it("are built again when a file changes, and say why they cannot be built", async () => {
    await start();
    const script = async () => (await service.request("GET", "/ui/agent/entrypoint.js")).text;
    expect(await script()).toContain("weather");
    project.write("ui.tsx", COMPONENTS.replace("weather:", "forecast:"));
    expect(await service.threadmill.reload(service.config)).toEqual({});
    expect(await script()).toContain("forecast");
    project.write("ui.tsx", "export default {");
    expect(await service.threadmill.reload(service.config)).toEqual({
      "UI components": expect.stringContaining("Expected identifier"),
    });
    expect(await post("agent", { name: "weather" })).toMatchObject({
      status: 502,
      body: { detail: expect.stringContaining("ui.tsx:1") },
    });
  });

  it("need the bundler in the project", async () => {
    project = withUi();
    rmSync(join(project.folder, "node_modules"));
    service = await startService({ database: "sqlite", config: project.config });
    expect(await service.threadmill.loaded).toMatchObject({
      "UI components":
        'the package @langchain/langgraph-ui is not installed in the project: run "npm install @langchain/langgraph-ui"',
    });
  });
});

it.each([
  [{ ui: "./ui.tsx" }, "ui must map graph names to modules"],
  [{ ui: { agent: 7 } }, "ui.agent must be the path of a module in "],
  [{ ui: { agent: "../ui.tsx" } }, "ui.agent must be the path of a module in "],
  [{ ui: { "a/b": "./ui.tsx" } }, "ui.a/b: the name may contain only"],
  [{ ui: { agent: "./ui.tsx" }, ui_config: { shared: "x" } }, "ui_config.shared must be a list of package names"],
])("langgraph.json is refused with %j", async (fields, reason) => {
  const project = createProject({
    "agent.ts": oneNodeGraph("hello"),
    "langgraph.json": JSON.stringify({ graphs: { agent: "./agent.ts:graph" }, ...fields }),
  });
  await expect(startService({ database: "sqlite", config: project.config })).rejects.toThrow(reason);
  project.drop();
});
