import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProject, type TestProject } from "../support/project.ts";
import { startService, type TestService } from "../support/service.ts";

const STATE = `
import { Annotation, StateGraph } from "@langchain/langgraph";
const S = Annotation.Root({ x: Annotation });
const build = (x) => new StateGraph(S).addNode("a", () => ({ x })).addEdge("__start__", "a");
`;

const FILES: Record<string, string> = {
  // What `npm init` writes: .ts files are CommonJS, whatever they look like.
  "package.json": '{"type": "commonjs"}',
  "typed.ts": `${STATE} export const graph = build("typed" as string).compile();`,
  "tsconfig.json": '{"compilerOptions": {"paths": {"@lib/*": ["./lib-*"]}}}',
  "lib-one.ts": `${STATE} export const make = (x: unknown) => build(x).compile();`,
  "alias.ts": 'import { make } from "@lib/one"; export const graph = make("alias");',
  "extensionless.ts": 'import { make } from "./lib-one"; export const graph = make("extensionless");',
  "enums.ts": `${STATE} enum E { A = "enum" } namespace N { export const x = E.A } export const graph = build(N.x).compile();`,
  "plain.mjs": `${STATE} export const graph = build("plain").compile();`,
  "uncompiled.mjs": `${STATE} export const graph = build("uncompiled");`,
  "promise.mjs": `${STATE} export const graph = Promise.resolve(build("promise").compile());`,
  "fallback.mjs": `${STATE} export default { graph: build("default").compile() };`,
  "factory.mjs": `${STATE} export const graph = async (config) => build(config.configurable?.colour ?? "none").compile();`,
  "agent.mjs": `${STATE} export const graph = { graph: build("agent").compile() };`,
  "env.mjs": `${STATE} export const graph = build(process.env.FROM_CONFIG).compile();`,
  "number.mjs": "export const graph = 7;",
  "other.mjs": "export const other = 7;",
};

const graphs = Object.fromEntries(
  ["alias.ts", "extensionless.ts", "enums.ts", "plain.mjs", "uncompiled.mjs", "promise.mjs", "factory.mjs", "agent.mjs"]
    .concat(["typed.ts", "env.mjs", "number.mjs", "other.mjs", "missing.mjs", "fallback.mjs"])
    .map((file) => [
      file.split(".")[0],
      file === "plain.mjs" ? { path: `./${file}:graph`, description: "Plain." } : `./${file}:graph`,
    ]),
);

describe("a project's graphs", () => {
  let project: TestProject;
  let service: TestService;
  beforeAll(async () => {
    const config = JSON.stringify({ graphs, env: { FROM_CONFIG: "variable" } });
    project = createProject({ ...FILES, "langgraph.json": config });
    service = await startService({ inline: false, database: "sqlite", config: project.config });
    await service.threadmill.loaded;
  });
  afterAll(async () => {
    await service.stop();
    project.drop();
  });

  const run = async (assistant_id: string, more: object = {}) =>
    (await service.request("POST", "/runs/wait", { assistant_id, input: {}, ...more })).body;

  it.each([
    ["alias", "alias"],
    ["extensionless", "extensionless"],
    ["enums", "enum"],
    ["plain", "plain"],
    ["typed", "typed"],
    ["uncompiled", "uncompiled"],
    ["promise", "promise"],
    ["fallback", "default"],
    ["agent", "agent"],
    ["factory", "none"],
    ["env", "variable"],
  ])("%s is loaded", async (graph, x) => {
    expect(await run(graph)).toEqual({ x });
  });

  it("are built by a factory for every run, with its config", async () => {
    expect(await run("factory", { config: { configurable: { colour: "red" } } })).toEqual({ x: "red" });
    expect(await run("factory", { config: { configurable: { colour: "blue" } } })).toEqual({ x: "blue" });
  });

  it("have their description from langgraph.json", async () => {
    const [assistant] = (await service.request("POST", "/assistants/search", { graph_id: "plain" })).body;
    expect(assistant.description).toBe("Plain.");
  });

  it.each([
    ["number", '"graph" is not a graph'],
    ["other", 'has no export "graph"; it exports other'],
    ["missing", "missing.mjs does not exist"],
  ])("that are not graphs (%s) have an error with the reason", async (graph, reason) => {
    expect((await run(graph)).detail).toContain(reason);
  });
});

describe("a project that npm init created", () => {
  let project: TestProject;
  let service: TestService;
  beforeAll(async () => {
    project = createProject({
      "package.json": '{"type": "commonjs"}',
      "agent.ts": `${STATE} export const one = build("one" as string).compile(); export const two = build("two").compile();`,
      "lacking.ts": 'import { nothing } from "not-installed"; export const graph = nothing;',
      "langgraph.json": JSON.stringify({
        graphs: { one: "./agent.ts:one", two: "./agent.ts:two", lacking: "./lacking.ts:graph" },
      }),
    });
    service = await startService({ inline: false, database: "sqlite", config: project.config });
    await service.threadmill.loaded;
  });
  afterAll(async () => {
    await service.stop();
    project.drop();
  });

  const run = async (assistant_id: string) =>
    (await service.request("POST", "/runs/wait", { assistant_id, input: {} })).body;

  it("may have several graphs in one TypeScript file", async () => {
    expect([await run("one"), await run("two")]).toEqual([{ x: "one" }, { x: "two" }]);
  });

  it("gets an error that names the missing package and the fix", async () => {
    const { detail } = await run("lacking");
    expect(detail).toBe(
      `The graph "lacking" could not be loaded: not-installed is not installed in ${project.folder}; run "npm install not-installed" there`,
    );
  });
});
