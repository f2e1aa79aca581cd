import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { experimentOf } from "../experiments/experiment.ts";
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
    service = await startService({ inline: false, database: "sqlite", config: project.config });
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

  it("tries an assistant on each example, judges it, and uploads the result", async () => {
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
    const { runs } = (await service.request("POST", "/api/v1/runs/query", { session: [session.id], error: true })).body;
    expect(runs).toMatchObject([{ inputs: { n: 7 }, error: "RangeError: not seven", outputs: null }]);
    expect(existsSync(journal())).toBe(false);
  });

  it("loads evaluators as graphs are loaded: with all of TypeScript, and LangChain where the folder has none", async () => {
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

  it("goes on after a crash where it was, and tries nothing twice", async () => {
    const door = join(folder.folder, "door");
    await datasetOf("crashed!", [{ n: 1 }, { n: 2 }, { n: 100, door }, { n: 101, door }]);
    const child = startCli(flags("crashed!", "--name", "try two", "--concurrency", "1"), { env: NO_KEYS });
    const ended = once(child, "exit");
    const rows = () => (existsSync(journal()) ? readFileSync(journal(), "utf8").split("\n").length - 1 : 0);
    await until("two rows are done", async () => rows() === 2);
    child.kill("SIGKILL");
    await ended;
    folder.write("door", "");
    const { status, stderr } = await run("crashed!", "--name", "try two");
    expect(status).toBe(0);
    expect(stderr).toContain("Skipping finished rows: 2 rows of 4.");
    expect(await get("/api/v1/sessions?name=try+two&include_stats=true")).toMatchObject([{ run_count: 4 }]);
  });

  it("repeats examples, and leaves a line out that a crash has cut off", async () => {
    await datasetOf("repeated", [{ n: 1 }]);
    folder.write("journal.jsonl", '{"row_id": "half');
    expect((await run("repeated", "--name", "try three", "--repetitions", "3")).status).toBe(0);
    const [session] = await get("/api/v1/sessions?name=try+three&include_stats=true");
    expect(session.run_count).toBe(3);
    expect((await get(`/api/v1/datasets/${session.reference_dataset_id}`)).example_count).toBe(1);
  });

  it("puts the result beside a dataset that takes no uploads", async () => {
    const { body: dataset } = await service.request("POST", "/api/v1/datasets", { name: "by hand" });
    await service.request("POST", "/api/v1/examples", {
      dataset_id: dataset.id,
      inputs: { n: 4 },
      outputs: { answer: 8 },
    });
    const { status, stderr } = await run("by hand", "--name", "try four");
    expect(status).toBe(0);
    expect(stderr).toContain('the experiment is stored in dataset "by hand (results)"');
    expect(await get("/api/v1/datasets?name=by+hand+%28results%29")).toMatchObject([
      { example_count: 1, session_count: 1 },
    ]);
  });

  it("keeps what is done when the service refuses, and says so", async () => {
    await datasetOf("refused!!!", [{ n: 1 }]);
    const args = flags("refused!!!").map((flag) => (flag === "double" ? "nobody" : flag));
    const { status, stderr } = await runCli(args, NO_KEYS);
    expect(status).toBe(1);
    expect(stderr).toContain("nobody");
    expect(stderr).toContain("run the same command again to continue");
  });

  it.each([
    ["an unknown dataset", ["--dataset", "nothing"], 'There is no dataset "nothing"'],
    ["a module that is not there", ["--evaluators", "nowhere.mjs"], "Cannot load the evaluators"],
    ["no runs at a time", ["--concurrency", "0"], "It must be a whole number from 1 to 1000."],
  ])("refuses %s with a sentence", async (_, more, sentence) => {
    const { status, stderr } = await run("doubles", ...more);
    expect(status).not.toBe(0);
    expect(stderr).toContain(sentence);
  });
});
