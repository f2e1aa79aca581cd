import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { parseSse } from "../support/sse.ts";
import { until } from "../support/until.ts";
import { Scenario, type Wire } from "./scenario.ts";

describe.each(databases)("events that have expired on %s", (database) => {
  let api: Scenario;
  let run: Wire;
  beforeAll(async () => {
    api = await Scenario.start(database, { RESUMABLE_STREAM_TTL_SECONDS: "0.05" });
    run = await api.newRun(await api.newThread(), { assistant_id: "chain", input: { steps: ["in"] } });
    await api.join(run);
    await until("they are gone", async () => (await read("-1")).some(({ event }) => event === "gap"));
  });
  afterAll(() => api.stop());

  const read = async (last: string | undefined, query = "") => {
    const path = `/threads/${run.thread_id}/runs/${run.run_id}/stream${query}`;
    const headers: Record<string, string> = last === undefined ? {} : { "Last-Event-ID": last };
    return parseSse((await api.send("GET", path, undefined, headers)).text);
  };

  it.each(["", "?stream_mode=updates"])("are announced with one event, in place of them %s", async (query) => {
    const events = await read("2", query);
    expect(events.map(({ event }) => event)).toEqual(["gap"]);
    // metadata, values of input and of three steps.
    expect(events[0]).toMatchObject({ id: "5", data: { run_id: run.run_id, after: 2, until: 5 } });
  });

  it("are announced after the metadata to who asks for everything", async () => {
    expect((await read("-1")).map(({ event }) => event)).toEqual(["metadata", "gap"]);
  });

  it("are of no interest to who has seen them all", async () => {
    expect(await read("5")).toEqual([]);
  });

  it("leave the run's output", async () => {
    expect((await api.join(run)).steps).toEqual(["in", "a", "b", "c"]);
  });
});
