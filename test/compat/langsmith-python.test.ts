import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { startService, type TestService } from "../support/service.ts";
import { pythonEnv, runScenarios, type ScenarioLine } from "./python-env.ts";

/** Addresses that users give the client, as the script names them. */
const PREFIXES = ["/", "/api/v1"];

/** The scenarios of python/langsmith_scenarios.py; a test below fails when this list is not complete. */
const SCENARIOS = [
  "projects are read by id and by name, with their statistics",
  "projects are listed by their dataset, names, ids and metadata",
  "projects are created, changed and deleted",
  "datasets are created, read, found, shared and deleted",
  "examples are created, changed and deleted",
  "examples are listed to the last, by ids, metadata and moments",
  "datasets have splits, which examples join and leave",
  "datasets have versions, which are found by time and tag, and compared",
  "datasets are uploaded as CSV, read as chats, and cloned",
  "examples have attachments, and what their run has",
  "the asynchronous client reads and writes datasets and examples",
  "runs are listed to the last, filtered, and read",
  "feedback is listed, created, changed and deleted, and the statistics follow",
  "what a feedback key means is said, found, changed and forgotten",
  "projects that are shared with their dataset are listed under its token",
  "the results of an experiment are gone through example by example",
  "experiments are kept together for comparison",
  "version 2 answers runs page by page, and examples side by side",
  "prompts are pushed, pulled as they were, and committed on the latest commit only",
  "runs are shared by a link, read with it, and closed",
  "threads are listed, read and counted",
  "feedback is sent with a token instead of a key",
];

const NAMES = PREFIXES.flatMap((prefix) => SCENARIOS.map((scenario) => `${prefix}: ${scenario}`));

const { python } = await pythonEnv();

describe.skipIf(!python).each(databases)("the official Python client of experiments against %s", (database) => {
  let service: TestService;
  let lines: ScenarioLine[];
  let complaints: string;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
    ({ lines, complaints } = await runScenarios(python as string, "langsmith_scenarios.py", [await service.listen()]));
  }, 150_000);
  afterAll(() => service.stop());

  it("passes all scenarios", () => {
    expect(lines.map(({ scenario }) => scenario)).toEqual(NAMES);
    expect(complaints).toBe("");
  });

  it.each(NAMES)("%s", (name) => {
    expect(lines.find(({ scenario }) => scenario === name)).toEqual({ scenario: name, ok: true });
  });
});
