import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyDelta, deltaOf } from "../../src/platform/lib/text-delta.ts";
import { databases } from "../support/databases.ts";
import { randomOf } from "../support/random.ts";
import { parseSse, type SseEvent } from "../support/sse.ts";
import { openOn } from "../support/storage.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe("the change of a text", () => {
  it("restores the text, and contains no half of a character", () => {
    const random = randomOf(7);
    // Two characters of two units each that share their first half, and two that share their second.
    const text = () =>
      Array.from({ length: random.integer(0, 6) }, () => random.pick(["a", "b", "😀", "😁", "🤀"])).join("");
    const check = (base: string, next: string) => {
      const delta = deltaOf(base, next);
      expect(applyDelta(base, delta)).toBe(next);
      expect(delta.added.isWellFormed()).toBe(true);
    };
    for (let i = 0; i < 20_000; i++) check(text(), text());
    // Long parts in any order, so that they are found in the middle, too.
    for (let i = 0; i < 5_000; i++) {
      const parts = Array.from({ length: 5 }, () => Array.from({ length: 12 }, text).join(""));
      const some = () =>
        Array.from({ length: random.integer(0, 8) }, () => random.pick(parts)).join(random.pick(["", "x"]));
      check(some(), some());
    }
  });

  it("is small wherever text was inserted, removed or moved", () => {
    const part = (n: number) => JSON.stringify(Array.from({ length: 100 }, (_, i) => `${n}:${i}:${i * n}`));
    const base = `{"count":1,"a":${part(1)},"b":${part(2)},"time":"12:00"}`;
    const next = `{"step":2,"payload":{"count":2,"b":${part(2)},"a":${part(1)},"time":"12:01"}}`;
    expect(deltaOf(base, next).added.length).toBeLessThan(100);
  });
});

describe.each(databases)("the log of a growing thread on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const ALL_WITH_STATE = ["values", "updates", "checkpoints", "debug", "custom"];
  const grow = (thread_id: string, n: number, stream_mode: string[]): Promise<SseEvent[]> =>
    api.stream(thread_id, {
      assistant_id: "chain",
      input: { steps: [`${n} 😀 ${"x".repeat(2000)}`] },
      stream_mode,
    });
  const replay = async ({ thread_id, run_id }: Wire, last = "-1"): Promise<SseEvent[]> => {
    const path = `/threads/${thread_id}/runs/${run_id}/stream`;
    return parseSse((await api.send("GET", path, undefined, { "Last-Event-ID": last })).text);
  };

  /** Stored characters of each run's events, in the order of the runs. */
  async function stored(thread_id: string): Promise<number[]> {
    const storage = openOn(api.service.database);
    try {
      const query = sql<{ size: number }>`select sum(length(data)) as size from run_events
        join runs on runs.run_id = run_events.run_id where thread_id = ${thread_id} group by runs.seq order by runs.seq`;
      return (await storage.read.all(query.compile(storage.read.k))).map(({ size }) => Number(size));
    } finally {
      await storage.close();
    }
  }

  it("replays the same events from any position", async () => {
    const thread_id = await api.newThread();
    const received: SseEvent[][] = [];
    for (let n = 0; n < 5; n++) received.push(await grow(thread_id, n, ALL_WITH_STATE));
    const runs: Wire[] = (await api.get(`/threads/${thread_id}/runs`)).toReversed();
    for (const [n, run] of runs.entries()) expect(await replay(run)).toEqual(received[n]);
    const [run, events] = [runs.at(-1), received.at(-1) as SseEvent[]];
    for (const [i, { id }] of events.entries()) expect(await replay(run, id)).toEqual(events.slice(i + 1));
  });

  it("replays values that grow and shrink from any position, also over several reads", async () => {
    const thread_id = await api.newThread();
    const lengths = [2000, 3, 2000, 40_000, 5, 60_000, 60_000, 7, 200_000, 2000, 200_000];
    const received = await api.stream(thread_id, { assistant_id: "flood", input: { lengths }, stream_mode: "custom" });
    expect(received).toHaveLength(lengths.length + 1);
    const [run] = await api.get(`/threads/${thread_id}/runs`);
    for (const [i, { id }] of received.entries()) expect(await replay(run, id)).toEqual(received.slice(i + 1));
  });

  it.each([["values", "updates"], ["checkpoints"], ["tasks"], ["debug"], ALL_WITH_STATE].map((modes) => [modes]))(
    "grows with what is new, with %j",
    async (modes) => {
      const thread_id = await api.newThread();
      for (let n = 0; n < 12; n++) await grow(thread_id, n, modes);
      const sizes = await stored(thread_id);
      // The twelfth run's state is six times as long as the second's, and told many times.
      expect(sizes[11]).toBeLessThan(1.2 * (sizes[1] as number));
    },
  );

  it("stays whole when runs are deleted that it refers to", async () => {
    const thread_id = await api.newThread();
    await grow(thread_id, 1, ALL_WITH_STATE);
    const [first] = await api.get(`/threads/${thread_id}/runs`);
    const received = await grow(thread_id, 2, ALL_WITH_STATE);
    const [second] = await api.get(`/threads/${thread_id}/runs`);
    await api.call("DELETE", `/threads/${thread_id}/runs/${first.run_id}`);
    expect(await replay(second)).toEqual(received);
  });
});
