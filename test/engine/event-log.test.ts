import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EventLog } from "../../src/agent-server/engine/streams/event-log.ts";
import { insertEvents } from "../../src/agent-server/storage/events.ts";
import type { Database, Tx } from "../../src/platform/database/database.ts";
import { databases } from "../support/databases.ts";
import { openTestStorage, type TestStorage } from "../support/storage.ts";

/** No reader is saved by looking again. */
const NEVER_MS = 1e9;
const SUCCESS = { status: "success", output: "{}" } as const;
const eventOf = (seq: number) => ({ seq, event: "custom", data: `{"n":${seq}}` });
const RUN = { run_id: "00000000-0000-7000-8000-000000000001", tenant_id: "t" };

/** A database that has read, and does not hand out what it has read before it is told to. */
function slowToAnswer(database: Database) {
  const asked = Promise.withResolvers<void>();
  const answers = Promise.withResolvers<void>();
  const late = <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
    async function (this: Tx, ...args: A): Promise<R> {
      const answer = await ask.apply(database.read, args);
      asked.resolve();
      await answers.promise;
      return answer;
    };
  const { all, first } = database.read;
  const read = Object.create(database.read, { all: { value: late(all) }, first: { value: late(first) } }) as Tx;
  return {
    database: Object.create(database, { read: { value: read } }) as Database,
    asked: asked.promise,
    answer: answers.resolve,
  };
}

describe.each(databases)("a reader of a run on %s while an event is written", (name) => {
  let storage: TestStorage;
  let hangUp: AbortController;
  beforeEach(async () => {
    storage = await openTestStorage(name);
    hangUp = new AbortController();
  });
  afterEach(async () => {
    hangUp.abort();
    await storage.close();
  });

  it("receives an event that was saved just after it had read", async () => {
    const slow = slowToAnswer(storage.database);
    const log = new EventLog(slow.database, NEVER_MS);
    const feed = log.hold(RUN.run_id);
    feed.begin(1, 0);
    const events = log.follow(RUN, 0, hangUp.signal);
    const received = events.next();
    await slow.asked;
    const event = { seq: 1, event: "custom", data: "{}" };
    feed.publish([event]);
    slow.answer();
    expect(await received).toEqual({ done: false, value: [event] });
  });

  it("receives the end that was saved just after it had read", async () => {
    const slow = slowToAnswer(storage.database);
    const log = new EventLog(slow.database, NEVER_MS);
    const feed = log.hold(RUN.run_id);
    feed.begin(1, 0);
    const end = log.follow(RUN, 0, hangUp.signal).next();
    await slow.asked;
    feed.end(SUCCESS, 1);
    slow.answer();
    expect(await end).toEqual({ done: true, value: undefined });
  });
});

describe.each(databases.filter((name) => name === "sqlite"))("a reader of a run of this process", (name) => {
  let storage: TestStorage;
  let hangUp: AbortController;
  beforeEach(async () => {
    storage = await openTestStorage(name);
    hangUp = new AbortController();
  });
  afterEach(async () => {
    hangUp.abort();
    await storage.close();
  });

  const store = (...seqs: number[]) => storage.database.write((tx) => insertEvents(tx, RUN, seqs.map(eventOf)));

  async function readFrom(log: EventLog, seq: number): Promise<number[]> {
    const seqs: number[] = [];
    for await (const events of log.follow(RUN, seq, hangUp.signal)) seqs.push(...events.map((event) => event.seq));
    return seqs;
  }

  it("reads nothing from the database when it has received all events", async () => {
    const slow = slowToAnswer(storage.database);
    const log = new EventLog(slow.database, NEVER_MS);
    const feed = log.hold(RUN.run_id);
    feed.begin(1, 1);
    feed.publish([eventOf(1), eventOf(2)]);
    const received = readFrom(log, 0);
    feed.end(SUCCESS, 1);
    feed.stop();
    expect(await Promise.race([received, slow.asked])).toEqual([1, 2]);
  });

  it("receives what another process stored between two executions of this one", async () => {
    const log = new EventLog(storage.database, NEVER_MS);
    const feed = log.hold(RUN.run_id);
    await store(1, 2, 3, 4);
    feed.begin(1, 1);
    feed.publish([eventOf(1), eventOf(2)]);
    feed.stop();
    feed.begin(3, 4);
    feed.end(SUCCESS, 3);
    expect(await readFrom(log, 2)).toEqual([3, 4]);
  });

  it("receives what another process stored before this one ends the run", async () => {
    const log = new EventLog(storage.database, NEVER_MS);
    const feed = log.hold(RUN.run_id);
    await store(1, 2, 3);
    feed.begin(1, 1);
    feed.publish([eventOf(1)]);
    feed.end(SUCCESS, 2);
    expect(await readFrom(log, 1)).toEqual([2, 3]);
  });

  it("receives events that are stored before later ones and published after them", async () => {
    const log = new EventLog(storage.database, NEVER_MS);
    const feed = log.hold(RUN.run_id);
    await store(1, 2, 3);
    feed.begin(1, 1);
    feed.publish([eventOf(1)]);
    feed.publish([eventOf(3)]);
    feed.end(SUCCESS, 1);
    expect(await readFrom(log, 1)).toEqual([2, 3]);
  });
});
