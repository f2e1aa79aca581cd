import { afterAll, beforeAll, describe, expect, it } from "vitest";
import buildPages from "../support/pages.ts";
import { startService, type TestService } from "../support/service.ts";

const CONFIG = "examples/langgraph.json";
const BROWSER = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

describe("the pages", () => {
  let service: TestService;
  const get = (path: string, headers?: Record<string, string>) => service.request("GET", path, undefined, headers);
  const scriptOf = (page: string) => /src="[^"]*\/app(\/assets\/[^"]+\.js)"/.exec(page)?.[1] as string;

  beforeAll(async () => {
    buildPages();
    service = await startService({
      database: "sqlite",
      config: CONFIG,
      env: { API_KEYS: "root-0123456789abcdef0123456789abcdef" },
    });
  });
  afterAll(() => service.stop());

  it("are open without a key at every address, with a policy that allows no other host", async () => {
    for (const path of ["/app", "/app/", "/app/threads/1", "/app/experiments/datasets/1/compare?experiments=a,b"]) {
      const { status, headers, text } = await get(path);
      expect([path, status, headers.get("cache-control")]).toEqual([path, 200, "no-cache"]);
      expect(text).toContain('content="/app/"');
      expect(headers.get("content-security-policy")).toMatch(/^default-src 'self';/);
      expect(headers.get("content-security-policy")).not.toMatch(/https?:|\*/);
    }
  });

  it("name the scripts that a browser may execute by a number that is used once", async () => {
    const [one, other] = [await get("/app"), await get("/app")];
    const nonceOf = ({ headers }: typeof one) =>
      /script-src 'nonce-([^']+)' 'strict-dynamic'/.exec(headers.get("content-security-policy") ?? "")?.[1] as string;
    expect(nonceOf(one)).not.toBe(nonceOf(other));
    const scripts = one.text.match(/<script[^>]*>|<link[^>]*modulepreload[^>]*>/g) as string[];
    expect(scripts.length).toBeGreaterThan(1);
    for (const script of scripts) expect(script).toContain(`nonce="${nonceOf(one)}"`);
    for (const rule of ["worker-src 'none'", "base-uri 'none'", "form-action 'self'"])
      expect(one.headers.get("content-security-policy")).toContain(rule);
  });

  it("load files that are compressed, and cached permanently when their name has a hash", async () => {
    const script = scriptOf((await get("/app")).text);
    const { status, headers } = await get(`/app${script}`, { "accept-encoding": "gzip, br" });
    expect([
      status,
      headers.get("content-type"),
      headers.get("content-encoding"),
      headers.get("cache-control"),
    ]).toEqual([200, "text/javascript; charset=utf-8", "br", "public, max-age=31536000, immutable"]);
    expect((await get("/app/icon.svg")).headers.get("cache-control")).toBe("no-cache");
  });

  it("are not the response for a file that does not exist, or is elsewhere on the disk", async () => {
    for (const path of ["/app/assets/nothing.js", "/app/..%2f..%2fpackage.json", "/app/%2e%2e/%2e%2e/package.json"])
      expect([path, (await get(path)).text]).not.toEqual([path, expect.stringMatching(/threadmill-path|"name"/)]);
  });

  it("get no data without a key", async () => {
    expect((await get("/app/api/session")).status).toBe(401);
    const key = { "X-Api-Key": "root-0123456789abcdef0123456789abcdef" };
    expect([(await get("/app/api/nothing")).status, (await get("/app/api/nothing", key)).status]).toEqual([401, 404]);
  });

  it("are where browsers are led to, and programs to the documentation", async () => {
    expect((await get("/", BROWSER)).headers.get("location")).toBe("/app");
    expect((await get("/")).headers.get("location")).toBe("/docs");
  });

  it.each([
    ["/o/t/datasets/d", "/app/experiments/datasets/d"],
    ["/o/t/datasets/d/e/1", "/app/experiments/datasets/d?example=1"],
    ["/o/t/projects/p/s", "/app/experiments/sessions/s"],
    ["/o/t/projects/p/s/r/r1?poll=true", "/app/runs/r1"],
    ["/o/t/projects", "/app/traces"],
    ["/public/t1/r", "/app/public/t1"],
    ["/prompts/greeting?organizationId=o", "/app/prompts/greeting"],
    ["/prompts/greeting/12e45678?organizationId=o", "/app/prompts/greeting/12e45678"],
    ["/prompts/..%2F..%2Fx/%2F%2Fevil.test", "/app/prompts/..%2F..%2Fx/%2F%2Fevil.test"],
    ["/o/t/datasets/d/compare?selectedSessions=a%2Cb", "/app/experiments/datasets/d/compare?experiments=a%2Cb"],
    [
      "/o/t/datasets/d/compare?selectedSessions=a&selectedSessions=b",
      "/app/experiments/datasets/d/compare?experiments=a%2Cb",
    ],
    ["/o/t/host/deployments", "/app/deployments"],
    ["/o/t/host/deployments/d", "/app/deployments/d"],
    ["/api-host/o/t/host/deployments/d", "/app/deployments/d"],
  ])("are where the address %s of an official client leads to", async (address, page) => {
    expect((await get(address)).headers.get("location")).toBe(page);
  });

  it("contain the prefix below which they are served", async () => {
    const config = CONFIG;
    const mounted = await startService({ database: "sqlite", config, env: { MOUNT_PREFIX: "/agents" } });
    const page = await mounted.request("GET", "/agents/app/threads");
    expect(page.text).toContain('content="/agents/app/"');
    expect((await mounted.request("GET", `/agents/app${scriptOf(page.text)}`)).status).toBe(200);
    expect((await mounted.request("GET", "/agents", undefined, BROWSER)).headers.get("location")).toBe("/agents/app");
    await mounted.stop();
  });
});
