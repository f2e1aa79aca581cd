import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { openStream } from "../support/open-stream.ts";
import { parseSse } from "../support/sse.ts";

/** Runs whose readers come at every moment of their life: before the first event, in between, at the end. */
const ROUNDS = 40;
const READERS = 8;

describe.each(databases)("readers of a run on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  it("that come at any moment are all told the same, and are at the end when the run is", async () => {
    const MODES = { stream_mode: ["custom", "updates"] };
    for (let round = 0; round < ROUNDS; round++) {
      const run = await api.newRun(await api.newThread(), { assistant_id: "chain", input: { steps: [] }, ...MODES });
      const path = `/threads/${run.thread_id}/runs/${run.run_id}`;
      const readers = [];
      for (let i = 0; i < READERS; i++) {
        readers.push(
          openStream(api.service, `${path}/stream`, { "Last-Event-ID": "-1" }).then(async (stream) => {
            const events = await stream.rest();
            return { events, status: (await api.get(path)).status };
          }),
        );
        // Lets the run get on by a little.
        if (i % 2 === 1) await new Promise((resolve) => setImmediate(resolve));
      }
      const told = await Promise.all(readers);
      for (const { events, status } of told) {
        expect(status).toBe("success");
        expect(events.map(({ id }) => Number(id))).toEqual([1, 2, 3, 4, 5, 6, 7]);
        expect(events).toEqual(told[0]?.events);
      }
    }
  });

  it("that come while it begins miss nothing of what it tells before it pauses", async () => {
    const open = [];
    for (let round = 0; round < ROUNDS; round++) {
      const door = api.newDoor();
      const run = await api.newRun(await api.newThread(), {
        assistant_id: "slow",
        input: { door: door.path },
        stream_mode: "custom",
      });
      const path = `/threads/${run.thread_id}/runs/${run.run_id}/stream`;
      const readers = Array.from({ length: READERS }, () => openStream(api.service, path, { "Last-Event-ID": "-1" }));
      // One event, and then the door is closed: nothing that comes later can make up for what was missed.
      for (const stream of await Promise.all(readers)) await stream.until(({ length }) => length > 0);
      open.push(door);
    }
    for (const door of open) door.open();
  });

  it("may be many, and slow ones hold up nobody", async () => {
    const door = api.newDoor();
    const run = await api.runningSlow(await api.newThread(), door.path);
    const path = `/threads/${run.thread_id}/runs/${run.run_id}/stream`;
    // Opened, and not read.
    const slow = await Promise.all(
      Array.from({ length: 50 }, () => openStream(api.service, path, { "Last-Event-ID": "-1" })),
    );
    const quick = Array.from({ length: 50 }, () => api.send("GET", path, undefined, { "Last-Event-ID": "-1" }));
    door.open();
    const texts = (await Promise.all(quick)).map(({ text }) => text.replaceAll(": heartbeat\n\n", ""));
    expect(new Set(texts).size).toBe(1);
    const expected = parseSse(texts[0] as string);
    for (const stream of slow) expect(await stream.rest()).toEqual(expected);
  });
});
