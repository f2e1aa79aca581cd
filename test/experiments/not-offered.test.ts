import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { experimentRoutes } from "../../src/experiments/contract/routes.ts";
import { experimentRoutesV2 } from "../../src/experiments/contract/v2/routes.ts";
import { Scenario, UNKNOWN_ID } from "../http/scenario.ts";

describe("a feature of the clients that is not offered", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start("sqlite");
  });
  afterAll(() => api.stop());

  it.each([
    ["GET", "/api/v1/platform/hub/repos/-/a/directories?repo_type=agent", "files of agents and skills"],
    ["POST", "/v1/platform/hub/repos/-/a/directories/commits", "files of agents and skills"],
    ["POST", "/api/v1/repos/", "repo type skill"],
    ["GET", "/api/v1/repos?repo_type=agent", "repo type agent"],
    ["POST", "/sessions/x/insights", "insights"],
    ["GET", "/api/v1/platform/evaluators", "online evaluators"],
    ["GET", "/api/v1/runs/rules", "online evaluators"],
    ["GET", "/api/v2/sandboxes/boxes/x", "sandbox"],
  ] as const)("%s %s is answered 404 with its name", async (method, path, feature) => {
    const { status, body } = await api.send(
      method,
      path,
      method === "POST" ? { repo_handle: "a", repo_type: "skill" } : undefined,
    );
    expect([status, body.detail]).toEqual([404, expect.stringContaining(feature)]);
    expect(body.detail).toMatch(/ is not supported\. /);
  });

  it("hides no route that is served", async () => {
    const groups = [...Object.values(experimentRoutes).map((routes) => ["/api/v1", routes] as const)];
    const routes = [...groups, ["/api/v2", experimentRoutesV2] as const].flatMap(([prefix, table]) =>
      Object.values(table as Record<string, { method: string; path: string }>).map(({ method, path }) => ({
        method: method.toUpperCase() as "GET",
        path: `${prefix}${path.replaceAll(/\{\w+\}/g, UNKNOWN_ID)}`,
      })),
    );
    const answers = await Promise.all(
      routes.map(async ({ method, path }) => [
        path,
        (await api.send(method, path, method === "GET" ? undefined : {})).text,
      ]),
    );
    expect(routes.length).toBeGreaterThan(70);
    expect(answers.filter(([, text]) => text?.includes(" is not supported. "))).toEqual([]);
  });

  it("leaves unknown routes as they are", async () => {
    const { status, body } = await api.send("GET", "/api/v1/platform/hub/repositories");
    expect([status, body.detail]).toEqual([404, "Route GET /api/v1/platform/hub/repositories not found."]);
  });
});
