import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { Instance } from "../control/router/instance.ts";
import { startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { describeInBrowser, FLAGS } from "../web/browser.ts";

/** Findings 1 and 3 of the security review, played by pages in Chromium against a service without keys. */

/** What an attacker would like to be done, by method and path. */
const WANTED: [method: string, path: string, body?: object][] = [
  [
    "POST",
    "/v2/deployments",
    { name: "mine", source: "internal_source", source_config: {}, source_revision_config: {} },
  ],
  [
    "POST",
    "/api-host/v2/deployments",
    { name: "mine", source: "internal_source", source_config: {}, source_revision_config: {} },
  ],
  ["POST", "/admin/keys", { name: "mine", scopes: ["admin"] }],
  ["POST", "/admin/workspaces", { name: "mine" }],
  ["POST", "/v2/auth/providers", { provider_id: "mine", name: "Mine" }],
  ["DELETE", "/v2/auth/tokens"],
  ["GET", "/app/api/session"],
  ["GET", "/v2/deployments"],
  ["PATCH", "/v2/deployments/00000000-0000-4000-8000-000000000000", {}],
  ["PUT", "/v2/uploads/x", {}],
];
/** What pages of this machine may do, and others not. */
const SHARED: typeof WANTED = [
  ["POST", "/threads", { metadata: { by: "a page" } }],
  ["POST", "/runs/wait", { assistant_id: "chain", input: { steps: [] } }],
  ["POST", "/api/v1/datasets", { name: "of a page" }],
  ["GET", "/info"],
];

const ATTACKS = readFileSync(new URL("./attacks.js", import.meta.url), "utf8").replace(/;\s*$/, "");

describeInBrowser("web pages of other origins", () => {
  let service: TestService;
  let url: string;
  let attacker: Server;
  let port: number;
  let browser: Browser;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "test/graphs/scenarios/langgraph.json" });
    url = await service.listen();
    attacker = createServer((_, response) =>
      response.setHeader("content-type", "text/html").end("<title>A page</title>"),
    );
    await once(attacker.listen(0, "127.0.0.1"), "listening");
    ({ port } = attacker.address() as AddressInfo);
    const args = [...FLAGS, "--host-resolver-rules=MAP evil.test 127.0.0.1"];
    browser = await chromium.launch({ executablePath: inject("chromium"), args });
  });
  afterAll(async () => {
    await browser.close();
    attacker.close();
    await service.stop();
  });

  /** Everything that a page could have changed. */
  const state = async () => {
    const ask = async (method: string, path: string, body?: object) => (await service.request(method, path, body)).body;
    return {
      keys: await ask("GET", "/admin/keys"),
      workspaces: await ask("GET", "/admin/workspaces"),
      deployments: await ask("GET", "/v2/deployments"),
      providers: await ask("GET", "/v2/auth/providers"),
      threads: await ask("POST", "/threads/search", {}),
      datasets: await ask("GET", "/api/v1/datasets"),
    };
  };

  /** Tries every way in which a page may send a request; answers the ways in which something was read. */
  async function attack(origin: string, wanted: typeof WANTED): Promise<string[]> {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(origin);
    const read = (await page.evaluate(`(${ATTACKS})(${JSON.stringify({ url, wanted })})`)) as string[];
    await context.close();
    return read;
  }

  it("of a deployment that is reached by a path cannot access the web app, and cannot intercept its requests", async () => {
    const script = `<script>
      const tried = {};
      const attempt = (name, work) => Promise.resolve().then(work).then((value) => { tried[name] = String(value); }, () => {});
      Promise.all([
        attempt("key", () => sessionStorage.getItem("threadmill.key")),
        attempt("cookie", () => { document.cookie = "a=b; path=/"; return document.cookie || Promise.reject(); }),
        attempt("worker", () => navigator.serviceWorker.register("worker.js", { scope: "/app" })),
        attempt("api", () => fetch("/app/api/session").then((answer) => answer.text())),
        attempt("opener", () => opener.document.title),
      ]).then(() => { document.title = JSON.stringify(tried); });
    </script>`;
    const instance = await Instance.start("page", ({ url: at = "" }, response) => {
      const isScript = at.endsWith(".js");
      response.writeHead(200, {
        "content-type": isScript ? "text/javascript" : "text/html",
        "service-worker-allowed": "/",
      });
      response.end(
        isScript ? "onfetch = (event) => event.respondWith(new Response('mine'))" : `<title>page</title>${script}`,
      );
    });
    const body = { name: "bad", source: "internal_source", source_config: {}, source_revision_config: {} };
    const { id } = (await service.request("POST", "/v2/deployments", body)).body;
    service.threadmill.router.activate(id, [instance.upstream]);
    const context = await browser.newContext();
    const page = await context.newPage();
    // Where a script of the deployment ran, it would have the key.
    await page.goto(`${url}/app`);
    await page.evaluate("sessionStorage.setItem('threadmill.key', 'the key of the operator')");
    for (const path of ["", "/any/page", "/ok"]) {
      await page.goto(`${url}/deployments/bad${path}`);
      expect([path, await page.title()]).toEqual([path, path === "/ok" ? "" : "page"]);
    }
    // Nothing of its code was executed, not even in a frame of its own.
    await page.goto(`${url}/app`);
    expect(await page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)")).toBe(0);
    await page.getByRole("heading").first().waitFor();
    await context.close();
    await instance.stop();
    await service.request("DELETE", `/v2/deployments/${id}`);
    const left = async () => (await service.request("GET", `/v2/deployments/${id}`)).status;
    await until("the deployment is gone", async () => (await left()) === 404);
  });

  it("change and read nothing from another host name", async () => {
    const before = await state();
    expect(await attack(`http://evil.test:${port}`, [...WANTED, ...SHARED])).toEqual([]);
    expect(await state()).toEqual(before);
  });

  it("change and read nothing but the agent server and experiments from another port", async () => {
    const before = await state();
    expect(await attack(`http://127.0.0.1:${port}`, WANTED)).toEqual([]);
    expect(await state()).toEqual(before);
    const read = await attack(`http://localhost:${port}`, SHARED);
    expect(read).toEqual(expect.arrayContaining(SHARED.map(([method, path]) => `${method} ${path} as JSON`)));
  });
});
