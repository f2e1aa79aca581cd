import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createLog, type Log } from "../../src/platform/lib/log.ts";
import { databases } from "../support/databases.ts";
import { until } from "../support/until.ts";
import { Scenario } from "./scenario.ts";

interface Line {
  level: string;
  event: string;
  fields: Record<string, unknown>;
}

describe.each(databases)("the log of runs on %s", (database) => {
  const lines: Line[] = [];
  let api: Scenario;

  beforeAll(async () => {
    const capture = (level: string) => (fields: Line["fields"], event: string) => lines.push({ level, fields, event });
    const log = Object.assign(createLog("silent"), { info: capture("info"), warn: capture("warn") }) as unknown as Log;
    api = await Scenario.start(database, {}, { log });
  });
  beforeEach(() => lines.splice(0));
  afterAll(() => api.stop());

  const CHAIN = { assistant_id: "chain", input: { steps: ["in"] } };

  const linesOf = (run_id: string) => lines.filter(({ fields }) => fields.run_id === run_id);
  const logged = (run_id: string, event: string) =>
    until(`"${event}" is logged`, async () => linesOf(run_id).find((line) => line.event === event));

  it("follows a run from its claim to its end by its id", async () => {
    const thread_id = await api.newThread();
    const { run_id, assistant_id } = await api.newRun(thread_id, CHAIN);
    await logged(run_id, "run settled");
    const fields = { run_id, thread_id, assistant_id, workspace_id: expect.any(String), attempt: 1 };
    expect(linesOf(run_id)).toEqual([
      { level: "info", event: "run claimed", fields },
      {
        level: "info",
        event: "run settled",
        fields: { ...fields, status: "success", duration_ms: expect.any(Number) },
      },
    ]);
  });

  it("has the status of a run that failed", async () => {
    const { run_id } = await api.newRun(await api.newThread(), { assistant_id: "fails", input: {} });
    expect((await logged(run_id, "run settled")).fields).toMatchObject({ status: "error", attempt: 1 });
  });

  it("has the cancel of a pending run, which was never claimed", async () => {
    const run = await api.newRun(await api.newThread(), { ...CHAIN, after_seconds: 3600 });
    await api.cancel(run, "?wait=1");
    expect(linesOf(run.run_id)).toEqual([
      { level: "info", event: "run cancel requested", fields: { run_id: run.run_id, action: "interrupt" } },
      {
        level: "info",
        event: "run settled",
        fields: expect.objectContaining({ status: "interrupted", attempt: 0, duration_ms: 0 }),
      },
    ]);
  });

  it("has the rollback of a running run", async () => {
    const run = await api.runningSlow(await api.newThread(), api.newDoor().path);
    await api.cancel(run, "?wait=1&action=rollback");
    expect(linesOf(run.run_id).map(({ event }) => event)).toEqual([
      "run claimed",
      "run cancel requested",
      "run rolled back",
    ]);
  });
});
