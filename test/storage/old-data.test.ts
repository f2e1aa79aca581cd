import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import { extract } from "tar";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config/config.ts";
import { startThreadmill, type Threadmill } from "../../src/main.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { execute } from "../support/postgres.ts";

/**
 * Data that version 0.1 (commit 3d6bf2a) wrote through its API: the SQLite files, and `pg_dump --inserts` of its Postgres database. The
 * JSON files name what is in them. Keys were encrypted with 32 bytes of the value 7.
 */
const FOLDER = join(import.meta.dirname, "data-of-0.1");
const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString("base64");

/** The statements of a dump, without the commands of psql and settings of newer servers. */
const statementsOf = (dump: string) => dump.replaceAll(/^(\\|SET transaction_timeout).*$/gm, "");

describe.each(databases)("data of version 0.1 on %s", (name) => {
  let at: TestDatabase;
  let service: Threadmill;
  const old = JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8"));

  beforeAll(async () => {
    at = await createDatabase(name, { empty: true });
    if (at.url === undefined) await extract({ file: join(FOLDER, "sqlite.tar.gz"), cwd: at.data_dir });
    else await execute(at.url, statementsOf(gunzipSync(readFileSync(join(FOLDER, "postgres.sql.gz"))).toString()));
    const flags = { config: resolve("examples/langgraph.json"), data: at.data_dir, databaseUrl: at.url, inline: true };
    const env = { API_KEYS: "admin-key", THREADMILL_ENCRYPTION_KEYS: ENCRYPTION_KEY, THREADMILL_RECONCILES: "0" };
    service = await startThreadmill(readConfig("serve", flags, env), createLog("silent"));
    await service.loaded;
  });
  afterAll(async () => {
    await service.stop();
    await at.drop();
  });

  const send = async (method: string, path: string, body?: object, key = "admin-key", status = 200) => {
    const response = await service.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: { "x-api-key": key, "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
    expect(response.status, `${method} ${path}`).toBe(status);
    // biome-ignore lint/suspicious/noExplicitAny: responses of many routes
    return response.json() as Promise<any>;
  };

  it("keeps assistants, threads and their history, and runs continue", async () => {
    expect(await send("GET", `/assistants/${old.assistant}`)).toMatchObject({
      name: "old assistant",
      graph_id: "echo",
    });
    expect((await send("GET", `/threads/${old.thread}/state`)).values).toEqual(old.state);
    expect(await send("GET", `/threads/${old.thread}/history`)).toHaveLength(old.history);
    const values = await send("POST", `/threads/${old.thread}/runs/wait`, {
      assistant_id: old.assistant,
      input: { text: "three" },
    });
    expect(values.text).toBe("three");
  });

  it("keeps open questions, and answers resume their runs", async () => {
    expect((await send("GET", `/threads/${old.asking}`)).status).toBe("interrupted");
    const values = await send("POST", `/threads/${old.asking}/runs/wait`, {
      assistant_id: "support_desk",
      command: { resume: { decision: "approve" } },
    });
    expect(values.messages.at(-1).content).toContain("1042");
    expect((await send("GET", `/threads/${old.asking}`)).status).toBe("idle");
  });

  it("keeps API keys with their scopes", async () => {
    expect(await send("POST", "/threads/search", {}, old.key)).toHaveLength(2);
    await send("GET", "/v2/deployments", undefined, old.key, 403);
  });

  it("keeps providers and deployments", async () => {
    expect(await send("GET", "/v2/auth/providers/old")).toMatchObject({ name: "Old provider" });
    expect(await send("GET", `/v2/deployments/${old.deployment}`)).toMatchObject({ name: "old-deployment" });
  });

  it("keeps experiments with their scores", async () => {
    expect(await send("GET", `/api/v1/datasets/${old.dataset}`)).toMatchObject({
      name: "old dataset",
      example_count: 3,
    });
    const session = await send("GET", `/api/v1/sessions/${old.session}?include_stats=true`);
    expect(session.feedback_stats.correct).toMatchObject({ n: 3 });
  });
});
