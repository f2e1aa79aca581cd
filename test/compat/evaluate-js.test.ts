import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { type FakeOpenAI, langsmithEnv, startFakeOpenAI } from "./evaluate-env.ts";

/** The scenarios of js/evaluate-scenarios.ts; a test below fails when this list is not complete. */
const SCENARIOS = [
  "evaluate() leaves an experiment with its rows, scores, tokens and errors",
  "evaluate() runs the examples of a split with their attachments",
  "evaluate() on the dataset of an uploaded experiment compares with it",
  "evaluateComparative() prefers the runs of one experiment",
  "traceable functions are a tree with metadata, tags, errors and the time of the first token",
  "attachments come back byte by byte",
  "wrapOpenAI() keeps messages, tokens, costs and the time of the first token",
  "a LangGraph graph is traced with its nodes",
  "LangChain models in a graph report tokens, costs and the time of the first token",
  "feedback is found with its run, whether it came before or after",
];

const VITEST = join(import.meta.dirname, "../../node_modules/vitest/vitest.mjs");

describe.each(databases)("evaluation and tracing in JavaScript against %s", (database) => {
  let service: TestService;
  let openAI: FakeOpenAI;
  let lines: { scenario: string; ok: boolean; reason?: string }[];
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
    openAI = await startFakeOpenAI();
    const { printed, complaints } = await runNode([join(import.meta.dirname, "js/evaluate-scenarios.ts"), openAI.url]);
    if (printed === "") throw new Error(complaints);
    lines = printed.split("\n").flatMap((line) => (line === "" ? [] : JSON.parse(line)));
  }, 150_000);
  afterAll(async () => {
    openAI.stop();
    await service.stop();
  });

  async function runNode(args: string[], env: Record<string, string> = {}) {
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...langsmithEnv(await service.listen()), ...env },
      timeout: 120_000,
    });
    const [printed, complaints] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { printed, complaints };
  }

  it("passes all scenarios", () => {
    expect(lines.map(({ scenario }) => scenario)).toEqual(SCENARIOS);
  });

  it.each(SCENARIOS)("%s", (name) => {
    expect(lines.find(({ scenario }) => scenario === name)).toEqual({ scenario: name, ok: true });
  });

  it("tests with langsmith/vitest leave an experiment with a row for each", async () => {
    const suite = `suite ${randomUUID()}`;
    const root = join(import.meta.dirname, "js/vitest-suite");
    // Outside of a repository: the client tags the version of the dataset with the commit.
    const env = { SUITE_NAME: suite, GIT_DIR: "/nowhere", VITEST: "", NO_COLOR: "1" };
    const { printed, complaints } = await runNode([VITEST, "run", "--root", root], env);
    expect(printed).toContain("1 failed | 2 passed");
    expect(complaints).not.toMatch(/Failed to |LangSmith\w*Error/);
    const get = async (path: string) => (await service.request("GET", `/api/v1${path}`)).body;
    const [dataset] = await get(`/datasets?name=${encodeURIComponent(suite)}`);
    const [session] = await get(`/sessions?reference_dataset=${dataset.id}&include_stats=true`);
    expect(session).toMatchObject({
      run_count: 3,
      error_rate: expect.closeTo(1 / 3),
      feedback_stats: {
        pass: { n: 3, avg: expect.closeTo(2 / 3) },
        exact: { n: 1, avg: 1 },
        judged: { n: 1, avg: 0.5, comments: ["so so"] },
      },
    });
    const body = { session_ids: [session.id] };
    const rows = (await service.request("POST", `/api/v1/datasets/${dataset.id}/runs`, body)).body;
    expect(rows).toHaveLength(3);
    const sums = rows.find(({ inputs }: { inputs: object }) => "a" in inputs);
    expect(sums).toMatchObject({ outputs: { sum: 3 }, runs: [{ status: "success", outputs: { sum: 3 } }] });
  });
});
