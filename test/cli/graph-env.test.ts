import { afterEach, describe, expect, it } from "vitest";
import { readGraphEnv } from "../../src/config/config.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { TEST_ENCRYPTION_KEY } from "../support/encryption.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";
import { startService } from "../support/service.ts";

const PATHS = { project_dir: "/project", config_file: "/project/langgraph.json" };
const URL_OF_SERVICE = "postgres://me:secret@localhost/service";

describe("the environment of graphs", () => {
  const envOf = (field: unknown, env: Record<string, string>) =>
    readGraphEnv(field, { ...PATHS, database_url: URL_OF_SERVICE }, env);
  const secrets = {
    API_KEYS: "k",
    THREADMILL_ENCRYPTION_KEYS: "e",
    THREADMILL_ENCRYPTION_KEYS_FILE: "/keys",
    DATABASE_URL: URL_OF_SERVICE,
    POSTGRES_URI: URL_OF_SERVICE,
  };

  it("is that of the service without its secrets", () => {
    expect(envOf(undefined, { ...secrets, OPENAI_API_KEY: "o", PATH: "/bin" })).toEqual({
      OPENAI_API_KEY: "o",
      PATH: "/bin",
    });
  });

  it("has a database that is not the service's", () => {
    const env = { DATABASE_URL: "postgres://localhost/mine" };
    expect(envOf(undefined, env)).toEqual(env);
  });

  it("has the variables that langgraph.json sets or lists, but never an encryption key", () => {
    expect(envOf(["API_KEYS", "DATABASE_URL", "THREADMILL_ENCRYPTION_KEYS"], secrets)).toEqual({
      API_KEYS: "k",
      DATABASE_URL: URL_OF_SERVICE,
    });
    const given = { DATABASE_URL: "postgres://localhost/mine", THREADMILL_ENCRYPTION_KEYS: "e", OTHER: "o" };
    expect(envOf(given, secrets)).toEqual({ DATABASE_URL: "postgres://localhost/mine", OTHER: "o" });
  });
});

describe("LANGGRAPH_CONFIG", () => {
  const configured = JSON.stringify({ agent: { configurable: { tone: "dry" } } });

  it.each([
    ["the map env", {}, { LANGGRAPH_CONFIG: configured }],
    ["the file that env names", { ".env": `LANGGRAPH_CONFIG='${configured}'` }, ".env"],
  ])("is used when it is in %s of langgraph.json", async (_, files, env) => {
    const project = createProject({
      ...(files as Record<string, string>),
      "agent.mjs": oneNodeGraph("one"),
      "langgraph.json": JSON.stringify({ graphs: { agent: "./agent.mjs:graph" }, env }),
    });
    const service = await startService({ database: "sqlite", config: project.config, inline: true });
    const { body } = await service.request("POST", "/assistants/search", {});
    expect(body).toMatchObject([{ graph_id: "agent", config: { configurable: { tone: "dry" } } }]);
    await service.stop();
    project.drop();
  });
});

const SHOWS_ITS_ENVIRONMENT = `
import { Annotation, StateGraph } from "@langchain/langgraph";
export const graph = new StateGraph(Annotation.Root({ env: Annotation }))
  .addNode("node", () => ({ env: { ...process.env } }))
  .addEdge("__start__", "node").addEdge("node", "__end__").compile();
`;

describe.each(databases)("a graph on %s", (name) => {
  let project: TestProject;
  let database: TestDatabase;
  let server: ServerProcess;
  afterEach(async () => {
    server.child.kill("SIGKILL");
    await server.ended;
    await database.drop();
    project.drop();
  });

  it.each([[[]], [["--inline"]]])("sees no secret of the service (%j)", async (flags) => {
    database = await createDatabase(name);
    project = createProject({
      "langgraph.json": '{"graphs": {"env": "./env.mjs:graph"}}',
      "env.mjs": SHOWS_ITS_ENVIRONMENT,
    });
    const key = "canary-key-0123456789";
    const env = {
      API_KEYS: key,
      THREADMILL_ENCRYPTION_KEYS: TEST_ENCRYPTION_KEY,
      SEEN: "yes",
      ...(database.url && { DATABASE_URL: database.url }),
    };
    const where = { data: database.data_dir, databaseUrl: database.url, port: await freePort() };
    server = await startProcess({ config: project.config, ...where, env, flags });
    const response = await fetch(`${server.url}/runs/wait`, {
      method: "POST",
      headers: { "x-api-key": key },
      body: JSON.stringify({ assistant_id: "env", input: {} }),
    });
    const seen = ((await response.json()) as { env: Record<string, string> }).env;
    expect(seen).toMatchObject({ SEEN: "yes", PATH: process.env.PATH });
    for (const secret of [key, TEST_ENCRYPTION_KEY, ...(database.url ? [database.url] : [])])
      expect(JSON.stringify(seen)).not.toContain(secret);
  });
});
