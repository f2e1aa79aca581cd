import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adminRoutes } from "../../src/access/contract/admin.ts";
import { isPublic, scopeOf } from "../../src/access/http/scopes.ts";
import { appRunRoutes } from "../../src/agent-server/contract/app-runs.ts";
import { appThreadRoutes } from "../../src/agent-server/contract/app-threads.ts";
import { agentServerRoutes } from "../../src/agent-server/contract/routes.ts";
import { webAppRoutes } from "../../src/app/contract/web-app.ts";
import { controlRoutes } from "../../src/control-plane/contract/routes.ts";
import { queuePageRoutes } from "../../src/experiments/contract/annotation-queues/app-queues.ts";
import { comparisonPageRoutes } from "../../src/experiments/contract/app-comparison.ts";
import { experimentRoutes } from "../../src/experiments/contract/routes.ts";
import { tracePageRoutes } from "../../src/experiments/contract/traces/app-traces.ts";
import { pricePageRoutes } from "../../src/experiments/contract/traces/prices.ts";
import { experimentRoutesV2 } from "../../src/experiments/contract/v2/routes.ts";
import { SCOPES } from "../../src/platform/contract/caller.ts";
import { databases } from "../support/databases.ts";
import { ADMIN, closedService, newCaller, newKey, newWorkspace } from "./callers.ts";
import { type Scenario, UNKNOWN_ID } from "./scenario.ts";

interface Route {
  method: string;
  /** With ids that nothing has. */
  path: string;
}

/** Routes of a contract, as they are served. */
const routesOf = (groups: object, ...prefixes: string[]): Route[] =>
  Object.values(groups)
    .flatMap((group) => Object.values(group) as Route[])
    .flatMap(({ method, path }) =>
      prefixes.map((prefix) => ({
        method: method.toUpperCase(),
        // At the root clients write this one with a version.
        path: `${prefix}${path.replaceAll(/\{\w+\}/g, UNKNOWN_ID)}`.replace(/^\/platform/, "/v1/platform"),
      })),
    );

const { system, ...agents } = agentServerRoutes;
const { metrics, ...open } = system;
const { System: experimentsSystem, ...experiments } = experimentRoutes;

/** What the contracts say who may call; null: whoever has a key. */
const EXPECTED = new Map<string, string | null>([
  ...routesOf({ open }, "").map((route) => [keyOf(route), null] as const),
  ...routesOf({ metrics: { metrics } }, "").map((route) => [keyOf(route), "admin"] as const),
  ...routesOf(agents, "").map((route) => [keyOf(route), "agents"] as const),
  ...routesOf(experiments, "/api/v1", "").map((route) => [keyOf(route), "experiments"] as const),
  ...routesOf({ experimentsSystem }, "/api/v1").map((route) => [keyOf(route), "experiments"] as const),
  ...routesOf({ experimentRoutesV2 }, "/api/v2", "/v2").map((route) => [keyOf(route), "experiments"] as const),
  ...routesOf({ adminRoutes }, "").map((route) => [keyOf(route), "admin"] as const),
  ...routesOf({ webAppRoutes }, "").map((route) => [keyOf(route), null] as const),
  ...routesOf({ pricePageRoutes }, "").map((route) => [keyOf(route), "experiments"] as const),
  ...routesOf({ comparisonPageRoutes }, "").map((route) => [keyOf(route), "experiments"] as const),
  ...routesOf({ queuePageRoutes }, "").map((route) => [keyOf(route), "experiments"] as const),
  ...routesOf({ tracePageRoutes }, "").map((route) => [keyOf(route), "experiments"] as const),
  ...routesOf({ appRunRoutes }, "").map((route) => [keyOf(route), "agents"] as const),
  ...routesOf({ appThreadRoutes }, "").map((route) => [keyOf(route), "agents"] as const),
  ...routesOf(controlRoutes, "", "/api-host").map((route) => [keyOf(route), "deployments"] as const),
  // Two products share it, and the body decides. The body of this test is an object: a batch of traces.
  ["POST /runs/batch", "experiments"],
]);

function keyOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

describe.each(databases)("every route on %s", (database) => {
  let api: Scenario;
  let routes: Route[];
  let closed: Route[];
  beforeAll(async () => {
    api = await closedService(database);
    routes = api.service.threadmill.routes
      .filter(({ method }) => method !== "ALL")
      .map(({ method, path }) => ({ method, path: path.replaceAll(/:\w+/g, UNKNOWN_ID) }));
    closed = routes.filter(({ method, path }) => !isPublic(method, path));
  });
  afterAll(() => api.stop());

  const send = ({ method, path }: Route, headers: Record<string, string>) =>
    api.send(method as "GET", path, method === "GET" ? undefined : {}, headers);

  /** Statuses and sentences by route, of those that are not answered as expected. */
  const otherThan = async (
    wanted: { status: number; detail?: string },
    headers: Record<string, string>,
    which = closed,
  ): Promise<unknown[]> => {
    const wrong: unknown[] = [];
    for (const route of which) {
      const { status, body } = await send(route, headers);
      if (status !== wanted.status || !String(body?.detail).includes(wanted.detail ?? ""))
        wrong.push([keyOf(route), status, body?.detail]);
    }
    return wrong;
  };

  it("of the contracts is served", () => {
    const served = new Set(routes.map(keyOf));
    expect(EXPECTED.size).toBeGreaterThan(130);
    expect([...EXPECTED.keys()].filter((route) => !served.has(route))).toEqual([]);
  });

  it("that is open is one of these", () => {
    expect(routes.filter(({ method, path }) => isPublic(method, path)).map(keyOf)).toEqual(
      expect.arrayContaining(["GET /ok", "GET /info", `GET /api/v1/public/${UNKNOWN_ID}/datasets`]),
    );
    const open = routes.filter(({ method, path }) => isPublic(method, path)).map(({ path }) => path);
    expect(
      open.filter(
        (path) =>
          !/^(\/ok|\/info|\/|\/app(\/\*|\/evaluator)?|(\/api-host)?\/o\/.*|\/prompts\/.*|((\/api)?\/v2|\/api\/v1)?\/public\/.*|(\/api\/v1)?\/feedback\/tokens\/[^/]+|.*(callback|setup).*|.*\/v2\/auth\/done|(\/api-host)?\/v2\/uploads\/[^/]+|\/ui\/[^/]+\/[^/]+)$/.test(
            path,
          ),
      ),
    ).toEqual([]);
  });

  it("is in the table of scopes", () => {
    expect(closed.filter(({ path, method }) => scopeOf(path, method) === undefined)).toEqual([]);
  });

  it.each<[string, () => Promise<Record<string, string>>]>([
    ["no key", async () => ({})],
    ["a key that nobody made", async () => ({ "X-Api-Key": `tmk_abcdefghijkl_${"x".repeat(43)}` })],
    ["a key with another secret", async () => ({ "X-Api-Key": (await newKey(api)).key.replace(/.{4}$/, "AAAA") })],
    ["the id of a key", async () => ({ "X-Api-Key": (await newKey(api)).id })],
    ["a JWT when there is no issuer", async () => ({ Authorization: "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0." })],
    ["a key in another scheme", async () => ({ Authorization: `Basic ${(await newKey(api)).key}` })],
    ["a workspace's id alone", async () => ({ "X-Tenant-Id": await newWorkspace(api) })],
    [
      "a revoked key",
      async () => {
        const { id, key } = await newKey(api);
        await api.call("DELETE", `/admin/keys/${id}`, undefined, ADMIN);
        return { "X-Api-Key": key };
      },
    ],
  ])("is answered 401 before anything else with %s", async (_, headers) => {
    expect(await otherThan({ status: 401, detail: "X-Api-Key" }, await headers())).toEqual([]);
  });

  it("is answered 403 with a key and the id of another workspace", async () => {
    const caller = await newCaller(api, { tenant_id: await newWorkspace(api), scopes: ["admin"] });
    for (const tenant_id of [await newWorkspace(api), UNKNOWN_ID, randomUUID(), "default", "%", "x".repeat(300)]) {
      const headers = { ...caller, "X-Tenant-Id": tenant_id };
      expect(await otherThan({ status: 403, detail: "X-Tenant-Id" }, headers, closed.slice(0, 10))).toEqual([]);
    }
    const headers = { ...caller, "X-Tenant-Id": await newWorkspace(api) };
    expect(await otherThan({ status: 403, detail: "X-Tenant-Id" }, headers)).toEqual([]);
  });

  it("accepts only keys with its scope or with admin, and names the scope to others", async () => {
    const callers = await Promise.all(
      SCOPES.map(async (scope) => ({ scope, headers: await newCaller(api, { scopes: [scope] }) })),
    );
    for (const route of closed) {
      const known = EXPECTED.get(keyOf(route));
      const scope = known === undefined ? scopeOf(route.path, route.method) : known;
      const refused: string[] = [];
      for (const caller of callers) {
        const { status, body } = await send(route, caller.headers);
        if (status !== 403 || !String(body?.detail).includes("scope")) continue;
        expect(body.detail).toContain(`does not have the required scope ${scope}`);
        refused.push(caller.scope);
      }
      const others = SCOPES.filter((other) => scope !== null && other !== scope && other !== "admin");
      expect([keyOf(route), refused]).toEqual([keyOf(route), others]);
    }
  });

  it("is answered 401 despite a wrong method, an unusual spelling, or an unreadable body", async () => {
    for (const [method, path, body] of [
      ["DELETE", "/info", undefined],
      ["GET", "/info/", undefined],
      ["GET", "/infos", undefined],
      ["PUT", "/threads", "{"],
      ["POST", "/ok", "{}"],
      ["POST", "/admin/keys", "{"],
      ["POST", "/datasets/upload-experiment", "x".repeat(100_000)],
      ["GET", "//ok", undefined],
      ["GET", "/ok/", undefined],
      ["GET", "/%6fk2", undefined],
      ["GET", "/public", undefined],
      ["GET", "/publicity/x", undefined],
      ["GET", "/threads/../ok2", undefined],
      ["POST", "/v2/auth/callback/google", "{}"],
      ["GET", "/v2/auth/callback", undefined],
      ["GET", "/v2/auth/callback/a/b", undefined],
    ] as const)
      expect([path, (await api.send(method, path, body)).status]).toEqual([path, 401]);
  });

  it.each([
    "/v2/auth/callback/google",
    "/v2/auth/setup/github",
    "/host-oauth-callback/google",
    "/api-host/v2/auth/callback/google",
    "/api-host/v2/auth/setup/github",
    "/api-host/host-oauth-callback/google",
  ])("%s is open to a browser, which has no key", async (path) => {
    expect((await api.send("GET", path)).status).not.toBe(401);
    expect((await api.send("POST", path, {})).status).toBe(401);
  });

  it("that does not exist returns 404 to callers with a key", async () => {
    const caller = await newCaller(api, { scopes: ["service"] });
    for (const path of ["/nowhere", "/adminx", "/V2/auth"])
      expect([path, (await api.send("GET", path, undefined, caller)).status]).toEqual([path, 404]);
  });
});
