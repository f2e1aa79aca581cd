import { afterEach, expect, it } from "vitest";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";
import { Scenario } from "./scenario.ts";

let api: Scenario | undefined;
let project: TestProject;
afterEach(async () => {
  await api?.stop();
  api = undefined;
  project.drop();
});

const start = async (http: object): Promise<Scenario> => {
  const langgraph = { graphs: { agent: "./agent.mjs:graph" }, http };
  project = createProject({ "agent.mjs": oneNodeGraph("one"), "langgraph.json": JSON.stringify(langgraph) });
  api = await Scenario.start("sqlite", {}, { config: project.config });
  return api;
};

/** A route of each group, and the body of a request to it. */
const ROUTES: Record<string, [method: "GET" | "POST", path: string][]> = {
  assistants: [["POST", "/assistants/search"]],
  threads: [["POST", "/threads"]],
  runs: [
    ["POST", "/runs/wait"],
    ["POST", "/runs/crons/search"],
    ["POST", "/ag-ui/agent"],
  ],
  store: [["POST", "/store/items/search"]],
  meta: [
    ["GET", "/info"],
    ["GET", "/metrics"],
    ["GET", "/docs"],
    ["GET", "/openapi.json"],
  ],
};

it.each(Object.keys(ROUTES))("http.disable_%s removes these routes and no other", async (disabled) => {
  const scenario = await start({ [`disable_${disabled}`]: true });
  for (const [group, routes] of Object.entries(ROUTES)) {
    for (const [method, path] of routes) {
      const body = method === "POST" ? { assistant_id: "agent", input: {}, threadId: "t", runId: "r" } : undefined;
      const { status } = await scenario.send(method, path, body);
      expect([path, status]).toEqual([path, group === disabled ? 404 : 200]);
    }
  }
  expect((await scenario.send("GET", "/ok")).status).toBe(200);
});

it("http.disable_runs must be true or false", async () => {
  await expect(start({ disable_runs: "yes" })).rejects.toThrow(
    /langgraph\.json: http\.disable_runs must be true or false\.$/,
  );
});
