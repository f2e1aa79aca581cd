import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startDeployingServer } from "../support/deploying-server.ts";
import { installed } from "../support/installed.ts";
import { freePort, runCli, startProcess } from "../support/process.ts";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";
import { startService } from "../support/service.ts";
import { parseSse, type SseEvent } from "../support/sse.ts";
import { until } from "../support/until.ts";

const AGENT = join(import.meta.dirname, "../graphs/own-packages/agent.ts");
const GRAPHS = ["talk", "ask", "steps", "delta", "described", "calls"];

/** The versions that docs/graphs.md names. Old ones are given the checkpoint package of their time: npm would pick a newer one. */
const VERSIONS = {
  "1.4.17": { "@langchain/langgraph": "1.4.17", "@langchain/core": "1.2.13", zod: "4.6.7" },
  "1.7.3": { "@langchain/langgraph": "1.7.3", "@langchain/core": "1.4.0", zod: "4.6.7" },
  "1.0.0": {
    "@langchain/langgraph": "1.0.0",
    "@langchain/core": "1.0.1",
    "@langchain/langgraph-checkpoint": "1.0.0",
    zod: "4.6.7",
  },
  "0.4.9": { "@langchain/langgraph": "0.4.9", "@langchain/core": "0.3.80", zod: "3.25.76" },
};
/** A deployment installs the packages from the registry, where one slow response takes minutes. */
const INSTALL_MS = 400_000;
const HAS_DELTA = /^1\.[4-9]/;

type Version = keyof typeof VERSIONS;

const modulesOf = new Map<Version, string | undefined>();
for (const version of Object.keys(VERSIONS) as Version[])
  modulesOf.set(version, await installed(`LangGraph ${version}`, VERSIONS[version]));
const isInstalled = [...modulesOf.values()].every((modules) => modules !== undefined);
/** Only called where everything is installed. */
const installedModules = (version: Version): string => modulesOf.get(version) as string;

/** A project whose packages are the installed ones, as `npm install` leaves it. */
function projectWith(version: Version, manifest: object): TestProject {
  const modules = installedModules(version);
  const dependencies = VERSIONS[version];
  const project = createProject({ "package.json": JSON.stringify({ ...manifest, dependencies }) });
  rmSync(join(project.folder, "node_modules"));
  symlinkSync(modules, join(project.folder, "node_modules"), "junction");
  copyFileSync(AGENT, join(project.folder, "agent.ts"));
  // Versions without DeltaChannel export no such graph.
  const names = GRAPHS.filter((name) => name !== "delta" || HAS_DELTA.test(version));
  const graphs = Object.fromEntries(names.map((name) => [name, `./agent.ts:${name}`]));
  project.write("langgraph.json", JSON.stringify({ graphs }));
  return project;
}

/** Where a project is served. */
interface Served {
  request(method: string, path: string, body?: object): Promise<string>;
  stop(): Promise<unknown>;
}

async function served({ config }: TestProject): Promise<Served> {
  const service = await startService({ inline: false, tracing: true, database: "sqlite", config });
  expect(await service.threadmill.loaded).toEqual({});
  return { request: async (...request) => (await service.request(...request)).text, stop: service.stop };
}

/** As a deployment, whose build installs the packages that package.json names. */
async function deployed({ folder }: TestProject): Promise<Served> {
  const server = await startDeployingServer();
  const { stderr, status } = await runCli([
    "deploy",
    folder,
    "--name",
    "own",
    "--url",
    server.url,
    "--api-key",
    server.key,
  ]);
  expect({ status, stderr }).toMatchObject({ status: 0 });
  const request = async (method: string, path: string, body?: object) =>
    (await server.call(method, `/deployments/own${path}`, body)).text();
  return { request, stop: server.stop };
}

type Case = [version: Version, type: "module" | "commonjs", serve: (project: TestProject) => Promise<Served>];

describe.runIf(isInstalled).each<Case>([
  ["1.4.17", "module", served],
  // As `npm init -y` writes it: then the project's modules and packages are CommonJS.
  ["1.4.17", "commonjs", served],
  ["1.4.17", "module", deployed],
  ["1.7.3", "module", served],
  ["1.7.3", "commonjs", served],
  ["1.0.0", "module", served],
  ["0.4.9", "module", served],
])("a project with its own LangGraph %s, of type %s, %o", (version, type, serve) => {
  let project: TestProject;
  let service: Served;
  beforeAll(async () => {
    project = projectWith(version, { type });
    service = await serve(project);
  }, INSTALL_MS);
  afterAll(async () => {
    await service?.stop();
    project?.drop();
  });

  const send = async (method: string, path: string, body?: object) => {
    const text = await service.request(method, path, body);
    return text.startsWith("event:") ? parseSse(text) : JSON.parse(text);
  };
  const thread = async (): Promise<string> => (await send("POST", "/threads", {})).thread_id;
  const wait = (thread_id: string, assistant_id: string, body: object) =>
    send("POST", `/threads/${thread_id}/runs/wait`, { assistant_id, ...body });
  const stream = (thread_id: string, assistant_id: string, body: object): Promise<SseEvent[]> =>
    send("POST", `/threads/${thread_id}/runs/stream`, { assistant_id, ...body });

  it("gives nodes messages of the project's classes, in the first run and the next", async () => {
    const thread_id = await thread();
    const input = (content: string) => ({ input: { messages: [{ role: "user", content }] } });
    expect((await wait(thread_id, "talk", input("hello"))).seen).toEqual(["BaseMessage+HumanMessage"]);
    expect((await wait(thread_id, "talk", input("again"))).seen).toEqual([
      "BaseMessage+HumanMessage",
      "BaseMessage+AIMessage",
      "BaseMessage+HumanMessage",
    ]);
  });

  // Instances of deployments do not store traces.
  it.runIf(serve === served)("is traced with its nodes and models", async () => {
    const thread_id = await thread();
    const input = { messages: [{ role: "user", content: "hello" }] };
    const created = await send("POST", `/threads/${thread_id}/runs`, { assistant_id: "talk", input });
    await send("GET", `/threads/${thread_id}/runs/${created.run_id}/join`);
    const root = await until("the trace is stored", async () => {
      const found = await send("GET", `/api/v1/runs/${created.run_id}`);
      return found.status === "success" && found;
    });
    expect(root).toMatchObject({ name: "talk", thread_id, trace_id: created.run_id });
    const types = root.child_run_ids.map(async (id: string) => (await send("GET", `/api/v1/runs/${id}`)).run_type);
    expect(await Promise.all(types)).toEqual(expect.arrayContaining(["chain", "llm"]));
  });

  it("gives nodes messages of the project's classes after a resume", async () => {
    const thread_id = await thread();
    const asked = await wait(thread_id, "ask", { input: { messages: [{ role: "user", content: "hello" }] } });
    expect(asked.__interrupt__).toMatchObject([{ value: { question: "go on?" } }]);
    expect((await wait(thread_id, "ask", { command: { resume: "yes" } })).seen).toEqual([
      "BaseMessage+HumanMessage",
      "BaseMessage+AIMessage",
      "yes",
    ]);
  });

  it("streams messages as they grow, and in every other mode", async () => {
    const modes = [
      "messages",
      "messages-tuple",
      "values",
      "updates",
      "custom",
      "debug",
      "tasks",
      "checkpoints",
      "events",
    ];
    const events = await stream(await thread(), "talk", {
      input: { messages: [{ role: "user", content: "hello" }] },
      stream_mode: modes,
    });
    const last = (name: string) => events.findLast(({ event }) => event === name)?.data;
    expect(last("error")).toBeUndefined();
    expect(last("messages/metadata")).toEqual({ [last("messages/partial")[0].id]: { metadata: expect.anything() } });
    expect(last("messages/partial")).toMatchObject([
      { type: expect.stringMatching(/^(ai|AIMessageChunk)$/), content: "Hi!" },
    ]);
    expect(last("messages/complete")).toMatchObject([{ type: "ai", content: "Hi!" }]);
    expect(new Set(events.map(({ event }) => event))).toEqual(
      new Set([
        ...["metadata", "messages/metadata", "messages/partial", "messages/complete", "messages", "values"],
        ...["updates", "custom", "debug", "tasks", "checkpoints", "events"],
      ]),
    );
  });

  it("goes where a command says, even with an input", async () => {
    const command = { goto: [{ node: "sent", input: { name: "by goto" } }] };
    const thread_id = await thread();
    await wait(thread_id, "steps", { input: {} });
    expect((await wait(thread_id, "steps", { command })).steps).toContain("sent by goto");
  });

  it("pauses in a subgraph and continues there", async () => {
    const thread_id = await thread();
    const asked = await stream(thread_id, "steps", { input: {}, stream_mode: ["updates"], stream_subgraphs: true });
    expect(asked.at(-1)?.data.__interrupt__).toMatchObject([{ value: "inner?" }]);
    const state = await send("GET", `/threads/${thread_id}/state?subgraphs=true`);
    expect(state.tasks[0].state.next).toEqual(["inner"]);
    expect((await wait(thread_id, "steps", { command: { resume: "yes" } })).steps).toEqual([
      "start",
      "start",
      "inner yes",
    ]);
  });

  it("forks from an earlier checkpoint", async () => {
    const thread_id = await thread();
    await wait(thread_id, "ask", { input: { messages: [{ role: "user", content: "hello" }] } });
    await wait(thread_id, "ask", { command: { resume: "yes" } });
    const history = await send("GET", `/threads/${thread_id}/history?limit=20`);
    const { checkpoint } = history.find(({ next }: { next: string[] }) => next[0] === "first");
    const forked = await wait(thread_id, "ask", { checkpoint, input: null });
    expect(forked.__interrupt__).toMatchObject([{ value: { question: "go on?" } }]);
  });

  it.runIf(HAS_DELTA.test(version))("rebuilds a DeltaChannel in the order in which it was written", async () => {
    const thread_id = await thread();
    await wait(thread_id, "delta", { input: {} });
    const resumed = await wait(thread_id, "delta", { command: { resume: "yes" } });
    const { values } = await send("GET", `/threads/${thread_id}/state`);
    expect(resumed).toEqual(values);
    // Before 1.7 LangGraph does not tell the checkpointer the order of the writes of one step.
    const read: string[] = version.startsWith("1.7")
      ? values.log
      : [...values.log.slice(0, 5).sort(), ...values.log.slice(5)];
    expect(read).toEqual(["ape", "bear", "fox", "wolf", "zebra", "end yes"]);
  });

  it("keeps what withLangGraph adds to a schema", async () => {
    const schemas = await send("GET", "/assistants/described/schemas");
    expect(schemas.input_schema.properties.topic).toMatchObject({ type: "string", langgraph_type: "prompt" });
  });

  it("lets a client without a URL reach this server, as the run's caller", async () => {
    expect(await wait(await thread(), "calls", { input: {} })).toEqual({
      mine: ["BaseMessage+HumanMessage"],
      events: ["metadata", "updates", "updates"],
    });
  });
});

describe.runIf(isInstalled)("a process that serves a project", () => {
  let project: TestProject;
  afterEach(() => project.drop());

  /** Starts the program, lets it execute a run of `agent` and stops it; returns the run's output and the lines that were logged. */
  async function runOnce(files: Record<string, string>, modules: string, flags: string[] = []) {
    project = createProject({ "package.json": '{"type": "module"}', ...files });
    rmSync(join(project.folder, "node_modules"));
    symlinkSync(modules, join(project.folder, "node_modules"), "junction");
    const where = { config: project.config, data: project.data, port: await freePort() };
    const server = await startProcess({ ...where, command: "dev", flags: ["--log-level", "info", ...flags] });
    const body = JSON.stringify({ assistant_id: "agent", input: {} });
    const answer = await (await fetch(`${server.url}/runs/wait`, { method: "POST", body })).json();
    server.child.kill("SIGTERM");
    await server.ended;
    const lines = server.output().split("\n");
    return { answer, lines, logged: lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line)) };
  }
  const GRAPHS_JSON = '{"graphs": {"agent": "./agent.mjs:graph"}}';

  it("warns once of a graph that mixes two copies, and names both", async () => {
    const [mine, others] = [installedModules("1.4.17"), installedModules("1.7.3")];
    const tool = mkdtempSync(join(tmpdir(), "threadmill-tool-"));
    writeFileSync(join(tool, "tool.mjs"), 'import "@langchain/core/messages";');
    symlinkSync(others, join(tool, "node_modules"), "junction");
    const agent = `import ${JSON.stringify(join(tool, "tool.mjs"))};\n${oneNodeGraph("one")}`;
    const files = { "agent.mjs": agent, "langgraph.json": GRAPHS_JSON };
    const { answer, logged } = await runOnce(files, mine, ["--hosts", "2"]);
    rmSync(tool, { recursive: true });
    expect(answer).toEqual({ answer: "one" });
    const warnings = logged.map(({ warning }) => warning).filter((text) => text?.includes("copies of @langchain/core"));
    expect(warnings).toHaveLength(1);
    for (const modules of [mine, others])
      expect(warnings[0]).toContain(`${modules}/@langchain/core/ (loaded with import)`);
  });

  it("gives each graph of a monorepo the packages that its own file finds", async () => {
    project = createProject({ "package.json": '{"type": "module"}' });
    rmSync(join(project.folder, "node_modules"));
    const graphs: Record<string, string> = {};
    for (const version of ["1.4.17", "1.7.3"] as const) {
      const folder = join(project.folder, `packages/${version}`);
      mkdirSync(folder, { recursive: true });
      symlinkSync(installedModules(version), join(folder, "node_modules"), "junction");
      copyFileSync(AGENT, join(folder, "agent.ts"));
      graphs[version] = `./packages/${version}/agent.ts:steps`;
    }
    project.write("langgraph.json", JSON.stringify({ graphs }));
    const service = await served(project);
    for (const assistant_id of Object.keys(graphs)) {
      const command = { goto: [{ node: "sent", input: { name: assistant_id } }] };
      const body = { assistant_id, command };
      expect(JSON.parse(await service.request("POST", "/runs/wait", body)).steps).toEqual([`sent ${assistant_id}`]);
    }
    await service.stop();
  });

  it("logs the messages of getLogger() in a module and in a node, the latter with the run's id", async () => {
    const agent = `import { getLogger } from "@langchain/langgraph-sdk/logging";
const logger = getLogger();
logger.info("loaded");
${oneNodeGraph("one").replace("config.writer?.", 'logger.warn({ message: "in the node", deep: { n: 1n } }); logger.error("failed", new Error("why"), { code: 7 }); config.writer?.')}`;
    const files = { "agent.mjs": agent, "langgraph.json": GRAPHS_JSON };
    const { logged } = await runOnce(files, installedModules("1.4.17"));
    expect(logged).toContainEqual(expect.objectContaining({ level: 30, msg: "loaded" }));
    const run = { run_id: expect.any(String), thread_id: expect.any(String), graph_id: "agent" };
    expect(logged).toContainEqual(expect.objectContaining({ level: 40, msg: "in the node", ...run }));
    expect(logged).toContainEqual(
      expect.objectContaining({ level: 50, msg: "failed", code: 7, meta: { error: "Error", message: "why" }, ...run }),
    );
  });
});
