import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { experimentOf } from "../experiments/experiment.ts";
import type { Wire } from "../http/scenario.ts";
import { runCli, startCli } from "../support/process.ts";
import { createProject, type TestProject } from "../support/project.ts";
import { startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

const NO_KEYS = { THREADMILL_API_KEY: "", LANGSMITH_API_KEY: "" };

/** Doubles a number; fails with 7, and waits with those from 100 on until there is a file named `door`. */
const GRAPH = `
import { existsSync } from "node:fs";
import { Annotation, StateGraph } from "@langchain/langgraph";
const State = Annotation.Root({ n: Annotation, door: Annotation, answer: Annotation });
export const graph = new StateGraph(State)
  .addNode("double", async ({ n, door }) => {
    if (n === 7) throw new RangeError("not seven");
    while (door && !existsSync(door)) await new Promise((resolve) => setTimeout(resolve, 5));
    return { answer: 2 * n };
  })
  .addEdge("__start__", "double").addEdge("double", "__end__").compile();
`;

const EVALUATORS = `
export const correct = ({ outputs, expected }) => outputs?.answer === expected?.answer;
export const size = async ({ outputs }) => ({ score: outputs?.answer ?? null, value: "number", comment: "the answer" });
export function broken() { throw new Error("out of order"); }
`;

describe("experiments run", () => {
  let service: TestService;
  let url: string;
  let folder: TestProject;
  let project: TestProject;
  beforeAll(async () => {
    project = createProject({ "langgraph.json": '{"graphs": {"double": "./graph.mjs:graph"}}', "graph.mjs": GRAPH });
    service = await startService({ inline: false, database: "sqlite", config: project.config, tracing: true });
    url = await service.listen();
  });
  afterAll(async () => {
    await service.stop();
    project.drop();
  });
  beforeEach(() => {
    folder = createProject({ "evaluators.mjs": EVALUATORS });
  });
  afterEach(() => folder.drop());

  const flags = (dataset: string, ...more: string[]) => [
    ...["experiments", "run", "--dataset", dataset, "--assistant", "double", "--url", url],
    ...["--journal", journal(), ...more],
  ];
  const journal = () => join(folder.folder, "journal.jsonl");
  const run = (dataset: string, ...more: string[]) => runCli(flags(dataset, ...more), NO_KEYS);
  const get = async (path: string) => (await service.request("GET", path)).body;

  /** A dataset with an example for each input, made by an upload. */
  async function datasetOf(name: string, inputs: Record<string, unknown>[]): Promise<void> {
    const body = experimentOf(
      inputs.length,
      () => [],
      { dataset_name: name, experiment_name: `first of ${name}` },
      (index) => `${String(name.length).padStart(8, "0")}-0000-4000-8000-${String(index).padStart(12, "0")}`,
    );
    const results = body.results.map((row, index) => ({
      ...row,
      inputs: inputs[index] as Record<string, unknown>,
      expected_outputs: { answer: Number(inputs[index]?.n) * 2 + (inputs[index]?.n === 3 ? 1 : 0) },
    }));
    expect((await service.request("POST", "/api/v1/datasets/upload-experiment", { ...body, results })).status).toBe(
      200,
    );
  }

  it("runs an assistant on each example, evaluates the outputs, and uploads the results", async () => {
    await datasetOf("doubles", [{ n: 1 }, { n: 3 }, { n: 7 }]);
    const { status, stdout, stderr } = await run(
      "doubles",
      "--name",
      "try one",
      "--evaluators",
      join(folder.folder, "evaluators.mjs"),
    );
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(stdout).toContain("Uploaded 3 rows");

    const [session] = await get("/api/v1/sessions?name=try+one&include_stats=true");
    expect(session).toMatchObject({
      run_count: 3,
      test_run_number: 2,
      extra: { metadata: { assistant: "double", dataset: "doubles" } },
      feedback_stats: {
        correct: { n: 3, avg: 1 / 3 },
        size: { n: 3, avg: 4, values: { number: 3 } },
        broken: { n: 3, errors: 3, avg: null, comments: Array(3).fill("out of order") },
      },
    });
    expect(session.error_rate).toBeCloseTo(1 / 3, 12);
    const failed = { session: [session.id], is_root: true, error: true };
    const { runs } = (await service.request("POST", "/api/v1/runs/query", failed)).body;
    expect(runs).toMatchObject([{ inputs: { n: 7 }, error: "RangeError: not seven", outputs: null }]);
    expect(existsSync(journal())).toBe(false);
  });

  it("loads evaluators like graphs: with all of TypeScript, and with Threadmill's LangChain if the folder has none", async () => {
    await datasetOf("typed", [{ n: 1 }]);
    rmSync(join(folder.folder, "node_modules"));
    folder.write(
      "typed.ts",
      `import { AIMessage } from "@langchain/core/messages";
enum Kind { Small = "small" }
export const kind = (): string => \`\${new AIMessage(Kind.Small).getType()} \${Kind.Small}\`;`,
    );
    const { status, stderr } = await run(
      "typed",
      "--name",
      "try typed",
      "--evaluators",
      join(folder.folder, "typed.ts"),
    );
    expect({ status, stderr }).toMatchObject({ status: 0 });
    const [session] = await get("/api/v1/sessions?name=try+typed&include_stats=true");
    expect(session.feedback_stats.kind.values).toEqual({ "ai small": 1 });
  });

  it("continues after a crash where it stopped, and runs no example twice", async () => {
    const door = join(folder.folder, "door");
    await datasetOf("crashed!", [{ n: 1 }, { n: 2 }, { n: 100, door }, { n: 101, door }]);
    const child = startCli(flags("crashed!", "--name", "try two", "--concurrency", "1"), { env: NO_KEYS });
    const ended = once(child, "exit");
    const lines = () => (existsSync(journal()) ? readFileSync(journal(), "utf8").split("\n").length - 1 : 0);
    await until("two rows are done, after the line of the experiment", async () => lines() === 3);
    child.kill("SIGKILL");
    await ended;
    folder.write("door", "");
    const { status, stderr } = await run("crashed!", "--name", "try two");
    expect(status).toBe(0);
    expect(stderr).toContain("Skipping finished rows: 2 of 4 rows.");
    expect(await get("/api/v1/sessions?name=try+two&include_stats=true")).toMatchObject([{ run_count: 4 }]);
  });

  it("stores the trace of the graph below each run, only in the experiment", async () => {
    await datasetOf("with traces", [{ n: 1 }, { n: 7 }]);
    expect((await run("with traces", "--name", "try traces")).status).toBe(0);
    const [session] = await get("/api/v1/sessions?name=try+traces");
    const query = async (body: object) => (await service.request("POST", "/api/v1/runs/query", body)).body.runs;
    const found = await until("the traces are stored", async () => {
      const all = await query({ session: [session.id] });
      return all.length === 6 && all.every(({ end_time }: { end_time: unknown }) => end_time) ? all : undefined;
    });
    for (const n of [1, 7]) {
      const [root, graph, node] = ["", "double", "double"].map((_, depth) =>
        found.find((each: Wire) => each.inputs.n === n && each.parent_run_ids.length === depth),
      );
      expect(root).toMatchObject({ reference_example_id: expect.any(String), dotted_order: expect.any(String) });
      expect(graph).toMatchObject({ name: "double", parent_run_id: root.id, reference_example_id: null });
      expect(node).toMatchObject({ name: "double", parent_run_id: graph.id, trace_id: root.id });
      expect(node.error ?? node.outputs).toEqual(n === 7 ? expect.stringContaining("not seven") : { answer: 2 });
    }
    expect(await get("/api/v1/sessions?name=try+traces&include_stats=true")).toMatchObject([{ run_count: 2 }]);
    expect(await get("/api/v1/sessions?name=double")).toEqual([]);
  });

  it("refuses to continue the rows of another experiment", async () => {
    await datasetOf("two names", [{ n: 1 }]);
    const experiment = { id: randomUUID(), name: "the first" };
    const row = { row_id: randomUUID() };
    folder.write("journal.jsonl", `${JSON.stringify({ experiment })}\n${JSON.stringify(row)}\n`);
    const { status, stderr } = await run("two names", "--name", "the second");
    expect(status).toBe(1);
    expect(stderr).toContain(
      'contains rows of experiment "the first". To continue that experiment, pass its name with --name',
    );
  });

  it("repeats examples, and ignores a line that a crash has cut off", async () => {
    await datasetOf("repeated", [{ n: 1 }]);
    folder.write("journal.jsonl", '{"row_id": "half');
    expect((await run("repeated", "--name", "try three", "--repetitions", "3")).status).toBe(0);
    const [session] = await get("/api/v1/sessions?name=try+three&include_stats=true");
    expect(session.run_count).toBe(3);
    expect((await get(`/api/v1/datasets/${session.reference_dataset_id}`)).example_count).toBe(1);
  });

  it("adds the experiment to a dataset that takes no uploads, as the runs of traces", async () => {
    const { body: dataset } = await service.request("POST", "/api/v1/datasets", { name: "by hand" });
    const example = await service.request("POST", "/api/v1/examples", {
      dataset_id: dataset.id,
      inputs: { n: 4 },
      outputs: { answer: 8 },
    });
    const { status, stdout } = await run("by hand", "--name", "try four", "--json");
    expect(status).toBe(0);
    const { experiment } = JSON.parse(stdout);
    expect(experiment).toMatchObject({ name: "try four", reference_dataset_id: dataset.id, run_count: 1 });
    const body = { session: [experiment.id], is_root: true };
    const { runs } = (await service.request("POST", "/api/v1/runs/query", body)).body;
    expect(runs).toMatchObject([
      {
        name: "double",
        run_type: "chain",
        status: "success",
        inputs: { n: 4 },
        outputs: { answer: 8 },
        reference_example_id: example.body.id,
        dotted_order: expect.stringContaining("Z"),
      },
    ]);
    expect(Date.parse(runs[0].end_time)).toBeGreaterThanOrEqual(Date.parse(runs[0].start_time));
    const again = await run("by hand", "--name", "try four");
    expect(again.status).toBe(1);
    expect(again.stderr).toContain('Experiment "try four" already exists; nothing was stored.');
  });

  it("stores nothing twice when it was stopped after the upload", async () => {
    await datasetOf("stored twice", [{ n: 1 }, { n: 2 }]);
    const evaluators = ["--evaluators", join(folder.folder, "evaluators.mjs")];
    expect((await run("stored twice", "--name", "try five", ...evaluators)).status).toBe(0);
    const [session] = await get("/api/v1/sessions?name=try+five&include_stats=true");
    const found = { session: [session.id], is_root: true };
    const { runs } = (await service.request("POST", "/api/v1/runs/query", found)).body;
    // The journal as it was before it was deleted.
    const rows = runs.map((stored: Record<string, unknown>) => ({
      run_id: stored.id,
      row_id: stored.reference_example_id,
      run_name: "double",
      inputs: stored.inputs,
      actual_outputs: stored.outputs,
      error: null,
      start_time: stored.start_time,
      end_time: stored.end_time,
      evaluation_scores: [{ key: "correct", score: true }],
    }));
    const lines = [{ experiment: { id: session.id, name: "try five" } }, ...rows];
    folder.write("journal.jsonl", `${lines.map((line: object) => JSON.stringify(line)).join("\n")}\n`);
    const again = await run("stored twice", "--name", "try five", "--concurrency", "1");
    expect(again).toMatchObject({ status: 0, stderr: expect.stringContaining("Skipping finished rows: 2 of 2 rows.") });
    expect(await get("/api/v1/sessions?name=try+five&include_stats=true")).toMatchObject([{ run_count: 2 }]);
  });

  it("keeps finished results when the service refuses requests, and prints an error", async () => {
    await datasetOf("refused!!!", [{ n: 1 }]);
    const args = flags("refused!!!").map((flag) => (flag === "double" ? "nobody" : flag));
    const { status, stderr } = await runCli(args, NO_KEYS);
    expect(status).toBe(1);
    expect(stderr).toContain("nobody");
    expect(stderr).toContain("Run the same command again to continue");
  });

  it.each([
    ["an unknown dataset", ["--dataset", "nothing"], 'There is no dataset named "nothing"'],
    ["a module that is not there", ["--evaluators", "nowhere.mjs"], "Cannot load the evaluators"],
    ["no runs at a time", ["--concurrency", "0"], "It must be a whole number from 1 to 1000."],
  ])("refuses %s with a sentence", async (_, more, sentence) => {
    const { status, stderr } = await run("doubles", ...more);
    expect(status).not.toBe(0);
    expect(stderr).toContain(sentence);
  });
});
