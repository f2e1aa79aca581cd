import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import { createOperations, type Operations } from "../../src/experiments/worker/operations.ts";
import type { Caller } from "../../src/platform/contract/caller.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { openSqlite } from "../../src/platform/database/sqlite/sqlite.ts";
import { documented } from "./experiment.ts";

const CALLER: Caller = { tenant_id: "somebody", user_id: "somebody", scopes: [] };
const NOW = "2031-05-06T07:08:09.123+00:00";

/** A request, of which the contract would fill in the rest. */
const some = (fields: object) => fields as never;

/** On Postgres it is the database's own, which cannot be set. */
describe("times of experiments", () => {
  const folder = mkdtempSync(join(tmpdir(), "threadmill-times-"));
  let database: Database;
  let operations: Operations;
  beforeAll(async () => {
    const clock = { now: () => Date.parse(NOW) };
    database = openSqlite({ file: join(folder, "experiments.db"), synchronous: "normal", clock });
    await migrate(database, MIGRATIONS.experiments);
    operations = createOperations(database);
  });
  afterAll(async () => {
    await database.close();
    rmSync(folder, { recursive: true });
  });

  it("are those of the database's clock, whatever is made or changed", async () => {
    const { uploads, sessions, datasets, examples, runs, feedback, comparative } = operations;
    const ticket = await uploads.begin(CALLER, 1_000_000);
    await uploads.push(ticket, Buffer.from(JSON.stringify(documented())));
    const { dataset, experiment } = JSON.parse((await uploads.finish(ticket)).response);
    const listed = await examples.list(CALLER, some({ dataset: dataset.id, as_of: "latest", limit: 1, offset: 0 }), "");
    expect(listed[0]).toMatchObject({ created_at: NOW, modified_at: NOW });
    const { runs: found } = await runs.query(CALLER, some({ session: [experiment.id], limit: 1 }), "");
    const run_id = found[0]?.id as string;
    const judged = await feedback.create(CALLER, some({ run_id, key: "new", score: 1 }));
    expect(judged).toMatchObject({ created_at: NOW, modified_at: NOW });
    expect(await feedback.update(CALLER, judged.id, { score: 0 })).toMatchObject({ modified_at: NOW });
    expect(await sessions.create(CALLER, {}, false)).toMatchObject({ start_time: NOW });
    const kept = await comparative.create(CALLER, some({ experiment_ids: [experiment.id] }));
    expect(kept).toMatchObject({ created_at: NOW, modified_at: NOW });
    const own = await datasets.create(CALLER, some({ name: "own", data_type: "kv" }));
    expect(
      await examples.create(CALLER, own.id, some([{ inputs: {}, use_source_run_attachments: [] }]), ""),
    ).toMatchObject([{ created_at: NOW, modified_at: NOW }]);
  });
});
