import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SEED } from "../support/counts.ts";
import { randomOf } from "../support/random.ts";
import { startService, type TestService } from "../support/service.ts";
import { partsOf, run, shuffled, type TestRun, TraceClient } from "./trace-client.ts";

const TRACES = 25;
const TYPES = ["chain", "chain", "tool", "llm", "embedding"];

describe("the tokens and costs of a trace that arrives in parts", () => {
  let service: TestService;
  let client: TraceClient;
  beforeAll(async () => {
    service = await startService({ database: "sqlite", config: "examples/langgraph.json", env: { API_KEYS: "" } });
    client = new TraceClient(service);
  });
  afterAll(() => service.stop());

  /** A random tree of up to 14 runs. A third of the runs has usage, whatever its type. */
  function tree(random: ReturnType<typeof randomOf>): TestRun[] {
    const runs: TestRun[] = [run({ session_name: "whole" })];
    const count = random.integer(3, 14);
    for (let at = 1; at < count; at++) {
      const parent = runs[random.integer(0, runs.length - 1)] as TestRun;
      const tokens = random.integer(0, 50);
      const usage_metadata = {
        input_tokens: tokens,
        output_tokens: 1,
        ...(random.integer(0, 3) === 0 && { total_cost: random.integer(1, 9) / 1000 }),
      };
      const time = new Date(Date.UTC(2026, 0, 31, 12, 0, random.integer(1, 50))).toISOString();
      runs.push(
        run({
          at,
          parent,
          run_type: TYPES[random.integer(0, TYPES.length - 1)],
          outputs: random.integer(0, 2) === 0 ? { usage_metadata } : {},
          ...(random.integer(0, 4) === 0 && { events: [{ name: "new_token", time }] }),
          session_name: "whole",
        }),
      );
    }
    return runs;
  }

  /** The same runs with other ids, some as a post without outputs and a patch with them, in requests of 1 to 4. */
  function parts(runs: readonly TestRun[], seed: number): { ids: string[]; bodies: Record<string, unknown>[] } {
    const random = randomOf(seed);
    const copies = new Map<string, TestRun>();
    for (const { id: original, trace_id: _, parent_run_id, dotted_order: __, start_time, ...fields } of runs) {
      const parent = copies.get(parent_run_id ?? "");
      const at = Date.parse(start_time) - Date.UTC(2026, 0, 31, 12);
      copies.set(original, run({ ...fields, at, ...(parent && { parent }), session_name: "parts" }));
    }
    const operations = [...copies.values()].flatMap((each) => {
      if (random.integer(0, 1) === 0) return [partsOf("post", [each])];
      const { outputs, end_time, ...posted } = each;
      const { id, trace_id, dotted_order } = each;
      return [
        partsOf("post", [posted as TestRun]),
        partsOf("patch", [{ id, trace_id, dotted_order, outputs, end_time }]),
      ];
    });
    const isOrdered = random.integer(0, 1) === 0;
    const rest = isOrdered ? [...operations] : shuffled(operations, seed);
    const bodies: Record<string, unknown>[] = [];
    while (rest.length > 0) bodies.push(Object.assign({}, ...rest.splice(0, random.integer(1, 4))));
    return { ids: [...copies.values()].map(({ id }) => id), bodies };
  }

  const usage = async (ids: readonly string[]) =>
    Promise.all(
      ids.map(async (id) => {
        const { name, run_type, total_tokens, prompt_tokens, total_cost, first_token_time } = await client.read(id);
        return { name, run_type, total_tokens, prompt_tokens, total_cost, first_token_time };
      }),
    );

  it(`is that of the trace in one request (seed ${SEED}; SEED changes it)`, async () => {
    for (let n = 0; n < TRACES; n++) {
      const whole = tree(randomOf(SEED + n));
      expect((await client.post(...whole)).status).toBe(202);
      const { ids, bodies } = parts(whole, SEED + n);
      for (const body of bodies) expect((await client.sendParts(body)).status).toBe(202);
      expect(await usage(ids), `trace ${n}`).toEqual(await usage(whole.map(({ id }) => id)));
    }
  });
});
