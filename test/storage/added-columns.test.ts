import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Scenario } from "../http/scenario.ts";
import { databases } from "../support/databases.ts";
import { execute } from "../support/postgres.ts";

/** More than the executions after which Postgres statements have names, on each connection. */
const USES = 40;

// SQLite compiles its statements again by itself.
describe.runIf(databases.includes("postgres"))("when a newer process adds columns", () => {
  let api: Scenario;
  beforeAll(async () => {
    api = await Scenario.start("postgres");
  });
  afterAll(() => api.stop());

  it("requests and runs continue, although Postgres refuses the plans of named statements", async () => {
    const run = async () => {
      const thread_id = await api.newThread();
      expect(await api.wait(thread_id, { assistant_id: "chain", input: { steps: [] } })).toBeDefined();
      expect((await api.service.request("GET", `/threads/${thread_id}`)).status).toBe(200);
      return thread_id;
    };
    const used = await Promise.all(Array.from({ length: USES }, run));
    const tables = ["threads", "runs", "assistants", "checkpoints", "run_events", "api_keys", "crons"];
    for (const table of tables)
      await execute(api.service.database.url as string, `alter table ${table} add column from_the_future text`);
    await Promise.all(Array.from({ length: USES }, run));
    for (const thread_id of used) expect((await api.service.request("GET", `/threads/${thread_id}`)).status).toBe(200);
  });
});
