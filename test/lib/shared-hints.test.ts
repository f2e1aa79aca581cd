import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, expect, test } from "vitest";
import { connectWorker, SharedHints } from "../../src/platform/database/sqlite/shared-hints.ts";

const MODULE = new URL("../../src/platform/database/sqlite/shared-hints.ts", import.meta.url).href;

/** A worker process that answers each cancel with an event of the same run. */
const WORKER = `
  const { connectService, SharedHints } = await import(${JSON.stringify(MODULE)});
  const hints = new SharedHints("file", 7);
  hints.listen("cancel", ({ run_id }) => hints.emit({ kind: "events", run_id }));
  connectService();
  hints.emit({ kind: "crons" });`;

const hints = new SharedHints("file", 1);
afterAll(() => hints.close());

test("a service and its worker process exchange hints, and the service knows the id of the ended one", async () => {
  const worker = spawn(process.execPath, ["--input-type=module", "--eval", WORKER], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ready = new Promise<void>((resolve) => hints.listen("crons", () => resolve()));
  connectWorker(worker);
  await ready;
  const answered = new Promise<string>((resolve) => hints.listen("events", ({ run_id }) => resolve(run_id)));
  hints.emit({ kind: "cancel", run_id: "a" });
  expect(await answered).toBe("a");
  expect([...hints.lost]).toEqual([]);
  worker.kill("SIGKILL");
  await once(worker, "exit");
  expect([...hints.lost]).toEqual([7]);
});
