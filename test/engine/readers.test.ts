import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import v8 from "node:v8";
import vm from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { openStream } from "../support/open-stream.ts";
import { parseSse } from "../support/sse.ts";

v8.setFlagsFromString("--expose-gc");
const collectGarbage: () => void = vm.runInNewContext("gc");

/** Of this process, in MB. */
function memoryInUse(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed / 1e6;
}

/** Runs whose readers come at every moment of their life: before the first event, in between, at the end. */
const ROUNDS = 40;
const READERS = 8;

describe.each(databases)("readers of a run on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  it("that join at any time all receive the same events, and end with the run", async () => {
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
      const results = await Promise.all(readers);
      for (const { events, status } of results) {
        expect(status).toBe("success");
        expect(events.map(({ id }) => Number(id))).toEqual([1, 2, 3, 4, 5, 6, 7]);
        expect(events).toEqual(results[0]?.events);
      }
    }
  });

  it("that join at the start of a run miss none of the events before it pauses", async () => {
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

  it("that do not read their sockets delay no other reader, use little memory, and get everything when they read", async () => {
    const url = await api.service.listen();
    const thread_id = await api.newThread();
    // 10 MB: more than sockets take, and more than twice of what is kept for live readers.
    const input = { lengths: Array(1_000).fill(10_000) };
    const run = await api.newRun(thread_id, { assistant_id: "flood", input, stream_mode: "custom" });
    const open = async (): Promise<IncomingMessage> => {
      const headers = { "Last-Event-ID": "-1" };
      const request = get(`${url}/threads/${thread_id}/runs/${run.run_id}/stream`, { headers });
      const [response] = (await once(request, "response")) as [IncomingMessage];
      return response.pause();
    };
    const numbers = async (response: IncomingMessage) => parseSse(await text(response)).map(({ id }) => Number(id));
    const all = Array.from({ length: 1_001 }, (_, n) => n + 1);

    const live = await Promise.all(Array.from({ length: 3 }, open));
    await api.join(run);
    const before = memoryInUse();
    const slow = await Promise.all(Array.from({ length: 30 }, open));
    // Whatever is sent without being asked for has been sent once others have everything.
    for (let n = 0; n < 3; n++) expect(await numbers(await open())).toEqual(all);
    expect(memoryInUse() - before).toBeLessThan(30);
    for (const response of [...live, ...slow]) expect(await numbers(response)).toEqual(all);
  });

  it("may be many, and slow ones delay no other reader", async () => {
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
