import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import { createApiKey } from "../../src/access/keys/api-keys.ts";
import { revokeApiKey } from "../../src/access/storage/api-keys.ts";
import { readConfig } from "../../src/config/config.ts";
import { startThreadmill } from "../../src/main.ts";
import { DEFAULT_TENANT } from "../../src/platform/contract/caller.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createDatabase, databases } from "../support/databases.ts";
import { encryptionEnv } from "../support/encryption.ts";
import { openOn } from "../support/storage.ts";
import { Scenario } from "./scenario.ts";

const OWNER = { tenant_id: DEFAULT_TENANT, user_id: "alice", name: "n", scopes: undefined };

describe.each(databases)("a service on loopback without keys on %s", (database) => {
  let api: Scenario;
  afterEach(() => api.stop());

  it("accepts every caller as the user local of the default workspace, whatever they send", async () => {
    api = await Scenario.start(database);
    const all: Record<string, string>[] = [
      {},
      { "X-Api-Key": "whatever" },
      { Authorization: "Bearer whatever" },
      { "X-Tenant-Id": randomUUID() },
      { "X-Tenant-Id": "nonsense", "X-Api-Key": `tmk_abcdefghijkl_${"x".repeat(43)}` },
    ];
    const { thread_id } = await api.call("POST", "/threads", {});
    for (const headers of all) {
      expect((await api.call("GET", `/threads/${thread_id}`, undefined, headers)).thread_id).toBe(thread_id);
      const { seen } = await api.call("POST", "/runs/wait", { assistant_id: "inspect", input: {} }, headers);
      expect(seen.configurable.user_id).toBe("local");
    }
    expect(await api.get("/admin/workspaces")).toMatchObject([{ tenant_id: DEFAULT_TENANT, name: "default" }]);
  });

  it("requires keys at once when another process creates one, and still does after it is revoked", async () => {
    api = await Scenario.start(database);
    const { thread_id } = await api.call("POST", "/threads", {});
    const beside = openOn(api.service.database);
    const { id, key } = await beside.write((tx) => createApiKey(tx, OWNER));
    expect((await api.send("GET", `/threads/${thread_id}`)).status).toBe(401);
    expect((await api.send("GET", "/ok")).status).toBe(200);
    // What was made while it was open belongs to the default workspace.
    const headers = { "X-Api-Key": key };
    expect((await api.send("GET", `/threads/${thread_id}`, undefined, headers)).status).toBe(200);
    await beside.write((tx) => revokeApiKey(tx, id, undefined));
    await beside.close();
    expect((await api.send("GET", `/threads/${thread_id}`, undefined, headers)).status).toBe(401);
    expect((await api.send("GET", `/threads/${thread_id}`)).status).toBe(401);
  });

  it("creates its first key over HTTP, and requires keys from then on", async () => {
    api = await Scenario.start(database);
    const { key, ...made } = await api.post("/admin/keys", { name: "first", scopes: ["admin"] });
    expect(made).toMatchObject({ user_id: "local", tenant_id: DEFAULT_TENANT, scopes: ["admin"] });
    expect((await api.send("POST", "/threads", {})).status).toBe(401);
    expect((await api.send("POST", "/threads", {}, { "X-Api-Key": key })).status).toBe(200);
  });
});

describe.each(databases)("a start on %s", (database) => {
  /** Starts on any address, without listening; answers the status of a request without a key. */
  const startOn = async (host: string, { env = {}, keys = 0 }: { env?: Record<string, string>; keys?: number }) => {
    const at = await createDatabase(database);
    const flags = { config: "test/graphs/scenarios/langgraph.json", data: at.data_dir, databaseUrl: at.url, host };
    const short = { LOG_LEVEL: "silent", BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "0.1" };
    const settings = { ...process.env, ...short, ...encryptionEnv(at.url), ...env };
    const start = () => startThreadmill(readConfig("serve", flags, settings), createLog("silent"));
    try {
      if (keys > 0) {
        // The first start on loopback makes the tables.
        await (
          await startThreadmill(readConfig("dev", { ...flags, host: "localhost" }, settings), createLog("silent"))
        ).stop();
        const beside = openOn(at);
        const { id } = await beside.write((tx) => createApiKey(tx, OWNER));
        await beside.write((tx) => revokeApiKey(tx, id, undefined));
        await beside.close();
      }
      const service = await start();
      const { status } = await service.fetch(new Request("http://localhost/openapi.json"));
      await service.stop();
      return status;
    } finally {
      await at.drop();
    }
  };

  it("on a public address without authentication is refused", async () => {
    await expect(startOn("0.0.0.0", {})).rejects.toThrow('create a key with "threadmill keys create", set API_KEYS');
  });

  it.each<[string, Parameters<typeof startOn>[1]]>([
    ["a key of the environment", { env: { API_KEYS: "key-0123456789abcdef" } }],
    ["a key in the database, even a revoked one", { keys: 1 }],
    [
      "an OIDC issuer",
      { env: { THREADMILL_OIDC_ISSUER: "https://id.example", THREADMILL_OIDC_AUDIENCE: "threadmill" } },
    ],
  ])("is closed on any address with %s", async (_, given) => {
    for (const host of ["0.0.0.0", "127.0.0.1"]) expect([host, await startOn(host, given)]).toEqual([host, 401]);
  });
});

it("a start warns of guessable keys in the environment, without printing them", async () => {
  const at = await createDatabase("sqlite");
  const lines: string[] = [];
  const log = Object.assign(createLog("silent"), { warn: (...line: unknown[]) => lines.push(JSON.stringify(line)) });
  const flags = { config: "test/graphs/scenarios/langgraph.json", data: at.data_dir, inline: true };
  const env = { ...process.env, API_KEYS: `weak-key,${"x".repeat(32)}` };
  await (await startThreadmill(readConfig("serve", flags, env), log)).stop();
  expect(lines.filter((line) => line.includes("API_KEYS"))).toEqual([
    expect.stringContaining('{"keys":1,"min_length":32}'),
  ]);
  expect(lines.join()).not.toContain("weak-key");
  await at.drop();
});
