import { randomUUID } from "node:crypto";
import { globSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createDatabase, type TestDatabase } from "../support/databases.ts";
import { freePort, type ServerProcess, startProcess } from "../support/process.ts";
import { create, pathOf, pidsOf, read } from "./steps.ts";

/** Of Debian's faketime: what a program gets from the system is changed, not the program. */
const [FAKETIME] = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1");

const CLOCKS = {
  "within Node": { preload: "test/crash/set-back.ts", env: (file: string) => ({ SET_BACK: file }) },
  ...(FAKETIME && {
    "by faketime": {
      preload: undefined,
      env: (file: string) => ({
        LD_PRELOAD: FAKETIME,
        FAKETIME_TIMESTAMP_FILE: file,
        FAKETIME_NO_CACHE: "1",
        FAKETIME_DONT_FAKE_MONOTONIC: "1",
      }),
    },
  }),
};

/** SQLite has the clock of the process. */
describe.each(Object.entries(CLOCKS))("a clock that is set back by an hour %s", (_, { preload, env }) => {
  let database: TestDatabase;
  let server: ServerProcess;
  const at = (file: string) => `${database.data_dir}/${file}`;
  const start = async () => {
    server = await startProcess({
      data: database.data_dir,
      port: await freePort(),
      config: "test/graphs/shared/langgraph.json",
      env: env(at("set-back")),
      ...(preload !== undefined && { preload }),
    });
  };
  const stop = async () => {
    server.child.kill("SIGKILL");
    await server.ended;
  };
  beforeEach(async () => {
    database = await createDatabase("sqlite");
    await start();
  });
  afterEach(async () => {
    await stop();
    await database.drop();
  });

  /** A run that waits for its gate, and one behind it on its thread. */
  const accepted = async () => {
    const thread_id = randomUUID();
    const first = await create(server, { gates: { a: at("go") } }, thread_id);
    await read(server, first).until((events) => events.some(({ data }) => data.step === "a"));
    return { thread_id, runs: [first, await create(server, {}, thread_id)] };
  };
  const inOrder = async ({ thread_id, runs }: Awaited<ReturnType<typeof accepted>>) => {
    const all = [...runs, await create(server, {}, thread_id)];
    writeFileSync(at("go"), "");
    for (const run of all) await pidsOf(server, run);
    const records = await Promise.all(
      all.map(async (run) => (await (await fetch(`${server.url}${pathOf(run)}`)).json()) as { updated_at: string }),
    );
    const ends = records.map(({ updated_at }) => updated_at);
    expect(ends).toEqual(ends.toSorted());
  };

  it("while it runs delays no run, and lets none overtake another", async () => {
    const waiting = await accepted();
    writeFileSync(at("set-back"), "-3600");
    await inOrder(waiting);
  });

  it("before it starts again delays none either", async () => {
    const waiting = await accepted();
    await stop();
    writeFileSync(at("set-back"), "-3600");
    await start();
    await inOrder(waiting);
    rmSync(at("set-back"));
  });
});
