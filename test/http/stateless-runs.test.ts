import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { parseSse } from "../support/sse.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("stateless runs on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const CHAIN = { assistant_id: "chain", input: { steps: ["in"] } };
  const DONE = { steps: ["in", "a", "b", "c"] };
  const statusOf = async (path: string) => (await api.send("GET", path)).status;
  const allEvents = async ({ run_id }: Wire) =>
    parseSse((await api.send("GET", `/runs/${run_id}/stream`, undefined, { "Last-Event-ID": "-1" })).text);

  it("return their values, and start with an empty state each time", async () => {
    expect(await api.post("/runs/wait", CHAIN)).toEqual(DONE);
    expect(await api.post("/runs/wait", CHAIN)).toEqual(DONE);
  });

  it("have a thread that no request sees while they run, and that is deleted afterwards", async () => {
    const door = api.newDoor();
    const run = await api.post("/runs", {
      assistant_id: "slow",
      input: { steps: ["in"], door: door.path },
      metadata: { mine: "hidden" },
    });
    const unseen = async () => {
      for (const rest of ["", "/state", "/history", "/runs"])
        expect(await statusOf(`/threads/${run.thread_id}${rest}`)).toBe(404);
      expect(await api.post("/threads/search", { metadata: { mine: "hidden" } })).toEqual([]);
      expect(await api.post("/threads/count", { metadata: { mine: "hidden" } })).toBe(0);
      expect((await api.send("POST", `/threads/${run.thread_id}/copy`)).status).toBe(409);
      expect((await api.send("POST", `/threads/${run.thread_id}/runs`, CHAIN)).status).toBe(404);
      expect((await api.send("PATCH", `/threads/${run.thread_id}`, {})).status).toBe(404);
      expect((await api.send("DELETE", `/threads/${run.thread_id}`)).status).toBe(404);
    };
    await unseen();
    const joined = api.get(`/runs/${run.run_id}/join`);
    door.open();
    expect((await joined).steps).toEqual(["in", "begin", "end"]);
    await unseen();
  });
  it("can be joined afterwards, and their events read from the start", async () => {
    const run = await api.post("/runs", CHAIN);
    expect(await api.get(`/runs/${run.run_id}/join`)).toEqual(DONE);
    expect(await api.get(`/runs/${run.run_id}/join`)).toEqual(DONE);
    const events = await allEvents(run);
    expect(events[0]).toMatchObject({ event: "metadata", data: { run_id: run.run_id } });
    expect(events.at(-1)).toMatchObject({ event: "values", data: DONE });
  });

  it("keep their thread with on_completion keep", async () => {
    const run = await api.post("/runs", { ...CHAIN, on_completion: "keep", metadata: { mine: "kept" } });
    expect(await api.get(`/runs/${run.run_id}/join`)).toEqual(DONE);
    expect(await api.thread(run.thread_id)).toMatchObject({ status: "idle", values: DONE });
    expect(await api.history(run.thread_id)).toHaveLength(5);
    expect(await api.wait(run.thread_id, CHAIN)).toEqual({ steps: [...DONE.steps, ...DONE.steps] });
  });

  it("that fail or pause are deleted too", async () => {
    const failed = await api.send("POST", "/runs/wait", { assistant_id: "fails", input: { kind: "type_error" } });
    expect(failed).toMatchObject({ status: 200, body: { __error__: { error: "TypeError" } } });
    const paused = await api.post("/runs", { assistant_id: "gate", input: { steps: [] } });
    expect((await api.get(`/runs/${paused.run_id}/join`)).__interrupt__).toMatchObject([
      { value: { question: "name?" } },
    ]);
    expect(await statusOf(`/threads/${paused.thread_id}`)).toBe(404);
  });

  it("ignore what belongs to runs on a thread", async () => {
    const body = { ...CHAIN, multitask_strategy: "reject", if_not_exists: "reject", checkpoint_id: "x", unknown: 1 };
    expect(await api.post("/runs/wait", body)).toEqual(DONE);
  });

  describe("in a batch", () => {
    it("are returned in the order of the request, and all run", async () => {
      const bodies = ["chain", "loop", "parent"].map((assistant_id, n) => ({
        assistant_id,
        input: { steps: [String(n)] },
        metadata: { n },
        streamMode: ["updates"],
      }));
      const runs = await api.post("/runs/batch", bodies);
      expect(runs.map(({ metadata }: Wire) => metadata.n)).toEqual([0, 1, 2]);
      for (const [n, run] of runs.entries())
        expect((await api.get(`/runs/${run.run_id}/join`)).steps[0]).toBe(String(n));
      expect(new Set(runs.map(({ thread_id }: Wire) => thread_id)).size).toBe(3);
    });

    it("are accepted or refused together", async () => {
      const metadata = { batch: "refused" };
      const bodies = [{ ...CHAIN, metadata, on_completion: "keep" }, { assistant_id: "nobody" }];
      expect((await api.send("POST", "/runs/batch", bodies)).status).toBe(404);
      expect(await api.post("/threads/count", { metadata })).toBe(0);
    });

    it.each<[string, unknown]>([
      ["an empty list", []],
      ["no list", CHAIN],
      ["more than a hundred", Array.from({ length: 101 }, () => CHAIN)],
      ["one that is not right", [CHAIN, { ...CHAIN, stream_mode: "nope" }]],
    ])("of %s is refused", async (_, body) => {
      expect(await api.send("POST", "/runs/batch", body)).toMatchObject({
        status: 422,
        body: { detail: expect.stringMatching(/^body/) },
      });
    });
  });
});
