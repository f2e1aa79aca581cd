import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scenario, type Wire } from "../http/scenario.ts";
import { openStream } from "../support/open-stream.ts";
import { createProject, oneNodeGraph, type TestProject } from "../support/project.ts";
import { until } from "../support/until.ts";

const GRAPHS = `
import { existsSync, writeFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import { AIMessage } from "@langchain/core/messages";
import { Annotation, entrypoint, interrupt, MessagesAnnotation, StateGraph } from "@langchain/langgraph";

/** Ends its host once. */
const die = (file) => {
  if (existsSync(file)) return;
  writeFileSync(file, "");
  process.exit(3);
};
const Answers = Annotation.Root({ answers: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }), file: Annotation });
const asking = new StateGraph(Answers)
  .addNode("first", () => ({ answers: [interrupt("first?")] }))
  .addNode("second", ({ file }) => {
    die(file);
    return { answers: [interrupt("second?")] };
  })
  .addEdge("__start__", "first").addEdge("first", "second").compile();
export const nested = new StateGraph(Answers).addNode("asking", asking).addEdge("__start__", "asking").compile();

export const blocks = new StateGraph(MessagesAnnotation)
  .addNode("say", () => ({ messages: [new AIMessage({ contentBlocks: [{ type: "text", text: "of blocks" }] })] }))
  .addEdge("__start__", "say").compile();

export const hanging = () => new Promise(() => undefined);

export const unmade = (config) => {
  throw new Error(config.configurable?.reason);
};

export const foreign = new StateGraph(Answers)
  .addNode("throw", () => runInNewContext("throw new TypeError('x is not a list')"))
  .addEdge("__start__", "throw").compile();

const Notes = Annotation.Root({ notes: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }), own: Annotation });
export const researcher = new StateGraph(Notes)
  .addNode("note", ({ notes }) => ({ notes: ["note"], own: notes.length }))
  .addEdge("__start__", "note").compile({ checkpointer: true });
export const supervisor = new StateGraph(Annotation.Root({ own: Annotation }))
  .addNode("researcher", researcher)
  .addEdge("__start__", "researcher").compile();

export const functional = entrypoint({ name: "functional", checkpointer: false }, async () => [interrupt("go on?"), "end"]);
`;

const isEnd = ({ method, params }: Wire) =>
  method === "lifecycle" && ["completed", "interrupted"].includes(params.data.event);

describe("the code of a graph", () => {
  let project: TestProject;
  let api: Scenario;
  beforeAll(async () => {
    const names = ["nested", "blocks", "hanging", "unmade", "functional", "foreign", "researcher", "supervisor"].map(
      (name) => [name, `./graphs.mjs:${name}`],
    );
    const graphs = {
      ...Object.fromEntries(names),
      one: "./one.mjs:graph",
      early: "./early.mts:graph",
      late: "./late.mts:graph",
      typed: "./typed.mts:graph",
    };
    project = createProject({
      "graphs.mjs": GRAPHS,
      "one.mjs": oneNodeGraph("one"),
      "early.mts": 'import { loads } from "./shared.mts"; import { graph } from "./one.mjs"; export { graph, loads };',
      "shared.mts": "globalThis.sharedLoads = (globalThis.sharedLoads ?? 0) + 1; export const loads: number = 1;",
      "late.mts": `import { RunnableConfig } from "@langchain/core/runnables"; import "./shared.mts";
        import { Annotation, StateGraph } from "@langchain/langgraph"; export type Config = RunnableConfig;
        export const graph = new StateGraph(Annotation.Root({ answer: Annotation }))
          .addNode("count", () => ({ answer: globalThis.sharedLoads })).addEdge("__start__", "count").compile();`,
      "typed.mts": 'import { graph } from "./nodes.mts"; export { graph };',
      "nodes.mts": `import { RunnableConfig } from "@langchain/core/runnables"; ${oneNodeGraph("typed")} export type Config = RunnableConfig;`,
      "langgraph.json": JSON.stringify({ graphs }),
    });
    api = await Scenario.start("sqlite", { N_JOBS_PER_WORKER: "1" }, { config: project.config, inline: false });
  });
  afterAll(async () => {
    await api.stop();
    project.drop();
  });

  it("gets one answer for one question of a subgraph, even if its host ends between two", async () => {
    const thread_id = await api.newThread();
    const file = join(project.folder, "nested");
    await api.wait(thread_id, { assistant_id: "nested", input: { file } });
    expect((await api.thread(thread_id)).status).toBe("interrupted");
    await api.wait(thread_id, { assistant_id: "nested", command: { resume: "yes" } });
    expect(existsSync(file)).toBe(true);
    const { status, interrupts } = await api.thread(thread_id);
    expect({ status, asked: JSON.stringify(interrupts) }).toEqual({
      status: "interrupted",
      asked: expect.stringContaining("second?"),
    });
    await api.wait(thread_id, { assistant_id: "nested", command: { resume: "no" } });
    expect((await api.state(thread_id)).values).toMatchObject({ answers: ["yes", "no"] });
  });

  it("can create a message with contentBlocks, which keeps its content", async () => {
    const thread_id = await api.newThread();
    const say = () => api.wait(thread_id, { assistant_id: "blocks", input: { messages: [] } });
    await say();
    const { messages } = await say();
    expect(messages.map(({ content }: { content: unknown }) => JSON.stringify(content))).toEqual([
      expect.stringContaining("of blocks"),
      expect.stringContaining("of blocks"),
    ]);
  });

  it("can return a list from a function, which the thread protocol streams", async () => {
    const thread_id = await api.newThread();
    await api.wait(thread_id, { assistant_id: "functional", input: {} });
    const output = await api.wait(thread_id, { assistant_id: "functional", command: { resume: "yes" } });
    expect(output).toEqual(["yes", "end"]);
    const url = `/threads/${thread_id}/stream/events`;
    const stream = await openStream(api.service, url, {}, { channels: ["values", "lifecycle"], since: 0 });
    const events = await stream.until((seen) => seen.filter(({ data }) => isEnd(data)).length === 2);
    const values = events.map(({ data }) => data).filter(({ method }: Wire) => method === "values");
    expect(values.at(-1).params.data).toEqual(["yes", "end"]);
    await stream.hangUp();
    const command = { id: 1, method: "state.get", params: { namespace: [], keys: ["x"] } };
    expect((await api.post(`/threads/${thread_id}/commands`, command)).type).toBe("success");
  });

  it("can throw in a factory, which is the error of the thread, whatever the error before", async () => {
    const thread_id = await api.newThread();
    for (const reason of ["no key", "no model"]) {
      const config = { configurable: { reason } };
      await api.wait(thread_id, { assistant_id: "unmade", input: {}, config });
      expect(await api.thread(thread_id)).toMatchObject({ status: "error", error: { message: reason } });
    }
  });

  it("can import an interface without the word type in a module that a graph imports", async () => {
    expect(await api.call("POST", "/runs/wait", { assistant_id: "typed", input: {} })).toEqual({ answer: "typed" });
  });

  it("executes a module of several graphs once, also if only some of them need tsx", async () => {
    expect(await api.call("POST", "/runs/wait", { assistant_id: "late", input: {} })).toEqual({ answer: 1 });
  });

  it("can be a graph and part of another one, which keeps the history that it was compiled with", async () => {
    const thread_id = await api.newThread();
    const own = async () => (await api.wait(thread_id, { assistant_id: "supervisor", input: {} })).own;
    const notes = [await own(), await own()];
    await api.call("POST", "/runs/wait", { assistant_id: "researcher", input: {} });
    expect([...notes, await own()]).toEqual([0, 1, 2]);
  });

  it("can throw an error of another realm", async () => {
    const output = await api.call("POST", "/runs/wait", { assistant_id: "foreign", input: {} });
    expect(output.__error__).toEqual({ error: "TypeError", message: "x is not a list" });
  });

  it("can hang in a factory, and keeps no slot once its run is cancelled", async () => {
    const thread_id = await api.newThread();
    for (let n = 0; n < 4; n++) {
      const run = await api.newRun(thread_id, { assistant_id: "hanging", input: {} });
      await until("it is executed", async () => (await api.run(run)).status === "running");
      await api.call("POST", `/threads/${thread_id}/runs/${run.run_id}/cancel?wait=true`);
    }
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => api.call("POST", "/runs/wait", { assistant_id: "one", input: {} })),
    );
    expect(answers).toEqual(Array(4).fill({ answer: "one" }));
  });
});
