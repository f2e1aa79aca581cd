import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startService, type TestService } from "../support/service.ts";
import { partsOf, run, TraceClient } from "./trace-client.ts";

const MAX_RUNS = 25_000;
const RUNS_PER_BODY = 2_500;
const USAGE = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };

describe("a trace of 25,000 runs", () => {
  let service: TestService;
  let client: TraceClient;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json", env: { API_KEYS: "" } });
    client = new TraceClient(service);
  });
  afterAll(() => service.stop());

  it("is stored while agents run, and refuses further runs by name", async () => {
    const root = run({ session_name: "large" });
    const model = { parent: root, session_name: "large", run_type: "llm", outputs: { usage_metadata: USAGE } };
    const runs = [root, ...Array.from({ length: MAX_RUNS + 9 }, (_, at) => run({ ...model, at }))];
    const answers: number[] = [];
    let isStored = false;
    const agent = (async () => {
      while (!isStored) {
        const { status } = await service.request("POST", "/runs/wait", { assistant_id: "echo", input: {} });
        answers.push(status);
      }
    })();
    let last: { status: number; body: { detail: { loc: string[]; msg: string }[] } } | undefined;
    for (let from = 0; from < runs.length; from += RUNS_PER_BODY)
      last = await client.sendParts(partsOf("post", runs.slice(from, from + RUNS_PER_BODY)), "zstd");
    isStored = true;
    await agent;
    expect(last?.status).toBe(400);
    expect(last?.body.detail.map(({ loc }) => loc[1])).toEqual(runs.slice(MAX_RUNS).map(({ id }) => id));
    expect(last?.body.detail[0]?.msg).toContain("A trace can have at most 25000 runs.");
    expect(new Set(answers)).toEqual(new Set([200]));
    const { child_run_ids, total_tokens } = await client.read(root.id);
    expect([child_run_ids.length, total_tokens]).toEqual([MAX_RUNS - 1, 2 * (MAX_RUNS - 1)]);
  });
});
