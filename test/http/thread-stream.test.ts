import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databases } from "../support/databases.ts";
import { openStream } from "../support/open-stream.ts";
import type { SseEvent } from "../support/sse.ts";
import { Scenario, UNKNOWN_ID } from "./scenario.ts";

describe.each(databases)("the stream of a thread on %s", (database) => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start(database);
  });
  afterAll(() => api.stop());

  const CHAIN = { assistant_id: "chain", input: { steps: ["in"] }, stream_mode: "updates" };
  const open = (thread_id: string, query = "", last?: string) =>
    openStream(
      api.service,
      `/threads/${thread_id}/stream${query}`,
      last === undefined ? {} : { "Last-Event-ID": last },
    );
  const names = (events: SseEvent[]) => events.map(({ event, data }) => (event === "lifecycle" ? data.event : event));
  const RUN = ["metadata", "updates", "updates", "updates"];

  it("carries every run of the thread, one after the other, for any assistant", async () => {
    const thread_id = await api.newThread();
    const stream = await open(thread_id);
    expect(stream.headers.get("location")).toBe(`/threads/${thread_id}/stream`);
    const first = await api.newRun(thread_id, CHAIN);
    const second = await api.newRun(thread_id, { ...CHAIN, assistant_id: "agent" });
    const events = await stream.until(({ length }) => length >= 8);
    await stream.hangUp();
    expect(names(events)).toEqual([...RUN, ...RUN]);
    expect([events[0]?.data.run_id, events[4]?.data.run_id]).toEqual([first.run_id, second.run_id]);
    expect(new Set(events.map(({ id }) => id)).size).toBe(8);
  });

  it("continues strictly after any of its events, in every mode", async () => {
    const thread_id = await api.newThread();
    await api.wait(thread_id, CHAIN);
    await api.wait(thread_id, { assistant_id: "gate", input: {}, stream_mode: "updates" });
    await api.wait(thread_id, { assistant_id: "fails", input: { kind: "type_error" }, stream_mode: "updates" });
    const query = "?stream_mode=run_modes&stream_mode=lifecycle&stream_mode=state_update";
    const whole = await open(thread_id, query, "-");
    const all = await whole.until(
      (events) => events.at(-1)?.data.status === "error" && events.at(-1)?.event === "state_update",
    );
    await whole.hangUp();
    expect(names(all)).toEqual([
      ...["started", ...RUN, "completed", "state_update"],
      ...["started", "metadata", "updates", "updates", "interrupted", "state_update"],
      ...["started", "metadata", "updates", "error", "failed", "state_update"],
    ]);
    expect(all[6]?.data).toMatchObject({ status: "success", values: { steps: ["in", "a", "b", "c"] } });
    for (const [i, { id }] of all.slice(0, -1).entries()) {
      const rest = await open(thread_id, query, id);
      const events = await rest.until(({ length }) => length >= all.length - 1 - i);
      await rest.hangUp();
      expect(events).toEqual(all.slice(i + 1));
    }
  });

  it("begins in the middle of a run when it is opened there", async () => {
    const thread_id = await api.newThread();
    await api.wait(thread_id, CHAIN);
    const door = api.newDoor();
    const run = await api.runningSlow(thread_id, door.path, { stream_mode: "updates" });
    const stream = await open(thread_id, "?stream_modes=run_modes&stream_modes=lifecycle");
    door.open();
    await api.join(run);
    const events = await stream.until((so_far) => names(so_far).includes("completed"));
    await stream.hangUp();
    expect(names(events)).toEqual(["updates", "completed"]);
  });

  it("reports a rollback", async () => {
    const thread_id = await api.newThread();
    const stream = await open(thread_id, "?stream_mode=lifecycle");
    await api.cancel(await api.runningSlow(thread_id), "?action=rollback&wait=1");
    await api.wait(thread_id, CHAIN);
    const events = await stream.until((so_far) => names(so_far).includes("completed"));
    await stream.hangUp();
    expect(names(events)).toEqual(["started", "rolled_back", "started", "completed"]);
  });

  it("ends when the thread is deleted", async () => {
    const thread_id = await api.newThread();
    const stream = await open(thread_id);
    await api.call("DELETE", `/threads/${thread_id}`);
    expect(await stream.rest()).toEqual([]);
  });

  it.each(["x", "1", "1-2", "1-2-3-4"])("refuses the id %s", async (last) => {
    const thread_id = await api.newThread();
    const answer = await api.send("GET", `/threads/${thread_id}/stream`, undefined, { "Last-Event-ID": last });
    expect(answer).toMatchObject({ status: 422, body: { detail: expect.stringContaining("Last-Event-ID") } });
  });

  it("returns 404 for an unknown thread, and 422 for an unknown mode", async () => {
    expect((await api.send("GET", `/threads/${UNKNOWN_ID}/stream`)).status).toBe(404);
    expect((await api.send("GET", `/threads/${await api.newThread()}/stream?stream_mode=all`)).status).toBe(422);
  });
});
