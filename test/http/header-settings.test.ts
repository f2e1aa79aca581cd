import { resolve } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { Log } from "../../src/platform/lib/log.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { Scenario } from "./scenario.ts";

const graphs = { chain: resolve(import.meta.dirname, "../graphs/scenarios/chain.ts:chain"), slow: "./slow.mjs:slow" };

/** A graph whose drawing is a slow request. */
const SLOW = `
import { Annotation, StateGraph } from "@langchain/langgraph";
export const slow = async () => {
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  return new StateGraph(Annotation.Root({ x: Annotation })).addNode("n", () => ({})).addEdge("__start__", "n").compile();
};
`;

let api: Scenario | undefined;
let project: TestProject;
afterEach(async () => {
  await api?.stop();
  api = undefined;
  project.drop();
});

const start = async (http: object, log?: Log): Promise<Scenario> => {
  project = createProject({ "slow.mjs": SLOW, "langgraph.json": JSON.stringify({ graphs, http }) });
  api = await Scenario.start("sqlite", {}, { config: project.config, ...(log && { log }) });
  return api;
};

const HEADERS = {
  "X.Dotted": "dots",
  "X-User-Id": "ada",
  "X-User-Secret": "hidden",
  "X-Other": "no",
  "X-Api-Key": "key",
  Authorization: "Bearer token",
  user_id: "mallory",
  langgraph_auth_user_id: "mallory",
  checkpoint_ns: "elsewhere",
};

/** `configurable` of a run that was created by a request with these headers. */
async function configurableOf(scenario: Scenario, path: string, body: unknown): Promise<Record<string, unknown>> {
  const created = await scenario.call("POST", path, body, HEADERS);
  const [run] = Array.isArray(created) ? created : [created];
  return run.kwargs.config.configurable;
}

it("configurable_headers become configurable values of new runs, before those of the body, and never credentials by a pattern", async () => {
  const scenario = await start({
    configurable_headers: { includes: ["x-USER-*", "a*", "*_*", "x.*"], excludes: ["*-secret"] },
  });
  const config = { configurable: { "x-user-id": "mallory", "x-other": "body" } };
  const body = { assistant_id: "chain", after_seconds: 99, config };
  const thread_id = await scenario.newThread();
  for (const [path, sent] of [
    [`/threads/${thread_id}/runs`, body],
    ["/runs", body],
    ["/runs/batch", [body]],
  ] as const) {
    const configurable = await configurableOf(scenario, path, sent);
    expect(configurable).toMatchObject({ "x-user-id": "ada", "x-other": "body", "x.dotted": "dots", user_id: "local" });
    expect(configurable.langgraph_auth_user_id).toBe("local");
    for (const name of ["x-user-secret", "x-api-key", "authorization", "checkpoint_ns"])
      expect(configurable).not.toHaveProperty(name);
  }
});

it("a credential is included by its full name, and nothing by default", async () => {
  const body = { assistant_id: "chain", after_seconds: 99 };
  const named = await configurableOf(
    await start({ configurable_headers: { include: ["Authorization"] } }),
    "/runs",
    body,
  );
  expect(named.authorization).toBe("Bearer token");
  await api?.stop();
  project.drop();
  const none = await configurableOf(await start({}), "/runs", body);
  expect(Object.keys(none).filter((name) => name.startsWith("x-") || name === "authorization")).toEqual([]);
});

it("logging_headers are in the line of a slow request", async () => {
  const lines: object[] = [];
  const write = (fields: object, msg: string) => void lines.push({ ...fields, msg });
  const log = { debug: write, info: write, warn: write, error: write } as unknown as Log;
  const scenario = await start({ logging_headers: { includes: ["x-*"], excludes: ["x-other"] } }, log);
  await scenario.call("GET", "/assistants/slow/graph", undefined, HEADERS);
  const headers = { "x-user-id": "ada", "x-user-secret": "hidden" };
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: "slow request", path: "/assistants/:assistant_id/graph", headers }),
  );
});

it.each([
  [{ configurable_headers: ["x-a"] }, /http\.configurable_headers must be an object/],
  [
    { configurable_headers: { includes: "x-a" } },
    /http\.configurable_headers\.includes must be a list of header names/,
  ],
  [{ logging_headers: { includes: ["x a"] } }, /http\.logging_headers\.includes must be a list of header names/],
  [{ logging_headers: { only: [] } }, /http\.logging_headers\.only is unknown: use "includes" and "excludes"/],
])("%j is refused", async (http, message) => {
  await expect(start(http)).rejects.toThrow(message);
});
