import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { getToken } from "../../src/agent-server/graph-hosts/author/get-token.ts";
import { freePort, startProcess } from "../support/process.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { startService, type TestService } from "../support/service.ts";

const MODULES = join(import.meta.dirname, "../../node_modules");

/** A graph that asks for a token, and says how long it was. */
const ASKS = `
import { Annotation, StateGraph } from "@langchain/langgraph";
import { getToken } from "threadmill/graph";
const S = Annotation.Root({ length: Annotation });
export const graph = new StateGraph(S)
  .addNode("a", async (_, config) => ({ length: (await getToken(config, { provider: "acme", scopes: ["read"] })).length }))
  .addEdge("__start__", "a").compile();
`;

const PROVIDER = {
  ...{ provider_id: "acme", name: "Acme", client_id: "c", client_secret: "s" },
  ...{ auth_url: "https://acme.example.com/auth", token_url: "https://acme.example.com/token" },
};

/** As `npm install` in the project makes it: packages of its own where it counts, and no threadmill among them. */
function giveItsOwnCopies({ folder }: TestProject, own: readonly string[]): void {
  const modules = join(folder, "node_modules");
  rmSync(modules);
  mkdirSync(join(modules, "@langchain"), { recursive: true });
  const scoped = readdirSync(join(MODULES, "@langchain")).map((name) => `@langchain/${name}`);
  const all = readdirSync(MODULES).filter((name) => name !== "@langchain" && !name.startsWith("."));
  for (const name of [...all, ...scoped])
    if (own.includes(name)) cpSync(join(MODULES, name), join(modules, name), { recursive: true });
    else symlinkSync(join(MODULES, name), join(modules, name), "junction");
}

describe("threadmill/graph", () => {
  let project: TestProject;
  let service: TestService | undefined;
  afterEach(async () => {
    await service?.stop();
    project?.drop();
    service = undefined;
  });

  /** Starts the project's graphs; answers what a run of each does without a token, and what it does with one. */
  async function runAll(graphs: Record<string, string>) {
    project.write("langgraph.json", JSON.stringify({ graphs }));
    const env = { THREADMILL_PUBLIC_URL: "http://localhost" };
    service = await startService({ inline: false, database: "sqlite", config: project.config, env });
    const { request } = service;
    expect(await service.threadmill.loaded).toEqual({});
    await request("POST", "/v2/auth/providers", PROVIDER);
    const threads = new Map<string, string>();
    const wait = async (assistant_id: string, body: object) =>
      (await request("POST", `/threads/${threads.get(assistant_id)}/runs/wait`, { assistant_id, ...body })).body;
    const asked: Record<string, string> = {};
    for (const name of Object.keys(graphs)) {
      threads.set(name, (await request("POST", "/threads", {})).body.thread_id);
      asked[name] = (await wait(name, { input: {} })).__interrupt__?.[0].value.provider;
    }
    await request("POST", "/v2/auth/tokens/import", { provider_id: "acme", access_token: "12345", scopes: ["read"] });
    const given: Record<string, number> = {};
    for (const name of Object.keys(graphs)) given[name] = (await wait(name, { command: { resume: true } })).length;
    return { asked, given };
  }

  const files = {
    "module.mjs": ASKS,
    "typed.ts": ASKS.replace("(_, config)", "(_: object, config: object)"),
    // Only tsx understands it.
    "enums.ts": `enum E { A = "a" }\n${ASKS.replace('"a", async', "E.A, async")}`,
  };
  const graphs = { module: "./module.mjs:graph", typed: "./typed.ts:graph", enums: "./enums.ts:graph" };

  it.each(["module", "commonjs"])("is there in a project without the package, of type %s", async (type) => {
    project = createProject({ "package.json": JSON.stringify({ type }), ...files });
    expect(await runAll(graphs)).toEqual({
      asked: { module: "acme", typed: "acme", enums: "acme" },
      given: { module: 5, typed: 5, enums: 5 },
    });
  });

  it.each(["module", "commonjs"])("is there with --inline, in a project of type %s", async (type) => {
    project = createProject({ "package.json": JSON.stringify({ type }), ...files });
    project.write("langgraph.json", JSON.stringify({ graphs }));
    const where = { config: project.config, data: project.data, port: await freePort() };
    const server = await startProcess({ ...where, command: "dev", flags: ["--inline"] });
    for (const assistant_id of Object.keys(graphs)) {
      const body = JSON.stringify({ assistant_id, input: {} });
      const response = await fetch(`${server.url}/runs/wait`, { method: "POST", body });
      const message = "OAuth provider 'acme' not found";
      expect(await response.json()).toEqual({ __error__: { error: "Error", message } });
    }
    server.child.kill("SIGKILL");
    await server.ended;
  });

  it("is there when tsconfig.json maps paths", async () => {
    project = createProject({
      "package.json": '{"type": "commonjs"}',
      "tsconfig.json": '{"compilerOptions": {"paths": {"@lib/*": ["./lib-*"]}}}',
      "lib-one.ts": ASKS,
      "alias.ts": 'export { graph } from "@lib/one";',
    });
    expect(await runAll({ alias: "./alias.ts:graph" })).toEqual({ asked: { alias: "acme" }, given: { alias: 5 } });
  });

  it("pauses a run whose LangGraph is the project's own copy", async () => {
    project = createProject({ "package.json": '{"type": "module"}', "agent.mjs": ASKS });
    giveItsOwnCopies(project, ["@langchain/core", "@langchain/langgraph", "@langchain/langgraph-checkpoint"]);
    expect(await runAll({ agent: "./agent.mjs:graph" })).toEqual({ asked: { agent: "acme" }, given: { agent: 5 } });
  });

  it.each([[{}], [{ configurable: {} }], [undefined]])("says what it needs elsewhere (config: %j)", async (config) => {
    const asking = getToken(config as object, { provider: "acme", scopes: [] });
    await expect(asking).rejects.toThrow("getToken works only in a Threadmill run");
  });
});
