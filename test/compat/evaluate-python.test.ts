import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { type FakeOpenAI, langsmithEnv, startFakeOpenAI } from "./evaluate-env.ts";
import { pythonEnv, runScenarios, type ScenarioLine } from "./python-env.ts";

/** The scenarios of python/evaluate_scenarios.py; a test below fails when this list is not complete. */
const SCENARIOS = [
  "evaluate() leaves an experiment with its rows, scores, tokens and errors",
  "evaluate() runs the examples of a split with their attachments",
  "aevaluate() leaves the same",
  "evaluate() on the dataset of an uploaded experiment compares with it",
  "evaluate_existing() adds scores to the runs of an experiment",
  "evaluate_comparative() prefers the runs of one experiment",
  "traceable functions are a tree with metadata, tags, errors and the time of the first token",
  "values that JSON lacks are kept as what comes closest",
  "attachments come back byte by byte",
  "wrap_openai() keeps messages, tokens and the time of the first token",
  "a LangGraph graph is traced with its nodes",
  "LangChain models in a graph report tokens, costs and the time of the first token",
  "feedback is found with its run, whether it came before or after",
  "the pytest plugin leaves an experiment with a row for each test",
];

const { python } = await pythonEnv();

describe.skipIf(!python).each(databases)("evaluation and tracing in Python against %s", (database) => {
  let service: TestService;
  let openAI: FakeOpenAI;
  let lines: ScenarioLine[];
  let complaints: string;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
    openAI = await startFakeOpenAI();
    const env = langsmithEnv(await service.listen());
    ({ lines, complaints } = await runScenarios(python as string, "evaluate_scenarios.py", [openAI.url], env));
  }, 150_000);
  afterAll(async () => {
    openAI.stop();
    await service.stop();
  });

  it("passes all scenarios", () => {
    expect(lines.map(({ scenario }) => scenario)).toEqual(SCENARIOS);
    expect(complaints).toBe("");
  });

  it.each(SCENARIOS)("%s", (name) => {
    expect(lines.find(({ scenario }) => scenario === name)).toEqual({ scenario: name, ok: true });
  });
});
