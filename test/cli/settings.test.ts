import { describe, expect, it } from "vitest";
import { readConfig, readStorageConfig } from "../../src/config/config.ts";
import { duration, durationText, size } from "../../src/config/settings/setting.ts";

const FLAGS = { config: "test/graphs/scenarios/langgraph.json" };
const read = (env: Record<string, string> = {}, flags: object = {}) => readConfig("serve", { ...FLAGS, ...flags }, env);

describe("a setting", () => {
  it.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["1.5m", 90_000],
    ["24h", 86_400_000],
  ])("accepts the duration %s", (text, ms) => {
    expect(duration()(text, "X")).toBe(ms);
  });

  it.each(["5", "", "-1s", "5 s", "1w", "0s", "25d"])("refuses the duration %j", (text) => {
    expect(() => duration()(text, "X")).toThrow("X must be a duration from 1ms to ");
  });

  it("prints durations in the largest unit that fits", () => {
    expect([500, 30_000, 90_000, 86_400_000].map(durationText)).toEqual(["500ms", "30s", "90s", "1d"]);
  });

  it.each([
    ["2048", 2048],
    ["50MB", 50_000_000],
    ["1.5kB", 1500],
    ["200MiB", 209_715_200],
  ])("accepts the size %s", (text, bytes) => {
    expect(size(0, 2 ** 31)(text, "X")).toBe(bytes);
  });

  it.each(["5 MB", "5TB", "-1", "10GB", "MB"])("refuses the size %j", (text) => {
    expect(() => size(0, 2 ** 31)(text, "X")).toThrow("X must be a size");
  });

  it("comes from the flag, then from its variables in their order, then from the default; empty counts as unset", () => {
    const env = {
      PORT: "1",
      DATABASE_URL: "postgres://b/b",
      THREADMILL_DATABASE_URL: "postgres://a/a",
      POSTGRES_URI: "x",
    };
    expect(read(env, { port: "2" })).toMatchObject({ port: 2, database_url: "postgres://a/a" });
    expect(read({ ...env, THREADMILL_DATABASE_URL: "" }).database_url).toBeUndefined();
    expect(read(env, { databaseUrl: "" }).database_url).toBeUndefined();
    expect(read({ PORT: "" }).port).toBe(2024);
    expect(readStorageConfig({}, { LOG_LEVEL: "WARN" }).log_level).toBe("warn");
  });

  it.each([
    [{ PORT: "x" }, '--port (or PORT) must be a whole number from 0 to 65535, but is "x".'],
    [
      { THREADMILL_LEASE: "4000" },
      'THREADMILL_LEASE must be a duration from 1ms to 24d, but is "4000". Units: ms, s, m, h, d.',
    ],
    [{ THREADMILL_LEASE: "900ms" }, "THREADMILL_LEASE (900 ms) must be at least twice THREADMILL_HEARTBEAT (500 ms)."],
    [{ THREADMILL_SHARE_DATA: "yes" }, '--share-data (or THREADMILL_SHARE_DATA) must be 1 or 0, but is "yes".'],
    [
      { DATABASE_URL: "mysql://x" },
      "--database-url (or THREADMILL_DATABASE_URL) must have the form postgres://user:password@host:5432/database.",
    ],
    [
      { THREADMILL_DATABASE_POOLER_URL: "postgres://a/a" },
      "THREADMILL_DATABASE_POOLER_URL requires DATABASE_URL to be set as well. DATABASE_URL must refer to Postgres itself, not to PgBouncer.",
    ],
    [
      { THREADMILL_OIDC_ISSUER: "https://issuer.example" },
      "THREADMILL_OIDC_ISSUER and THREADMILL_OIDC_AUDIENCE must be set together.",
    ],
    [
      { THREADMILL_ROLE: "worker" },
      "--role (or THREADMILL_ROLE) is worker, but processes with different roles must share a database. Set DATABASE_URL, for example to ",
    ],
    [{ THREADMILL_ROLE: "both" }, '--role (or THREADMILL_ROLE) must be all or api or worker, but is "both".'],
    [
      { THREADMILL_ROLE: "api", DATABASE_URL: "postgres://a/a", THREADMILL_ROLLOUT: "7" },
      "--role (or THREADMILL_ROLE) is api, but a deployment instance must serve requests and execute runs in one process: ",
    ],
  ])("is refused in one sentence: %j", (env, message) => {
    expect(() => read(env as Record<string, string>)).toThrow(message);
  });

  it("selects no role with dev, which does everything in one process", () => {
    const env = { DATABASE_URL: "postgres://a/a" };
    expect(() => readConfig("dev", { ...FLAGS, role: "api" }, env)).toThrow(
      '--role (or THREADMILL_ROLE) is api, but "threadmill dev" always runs in a single process: ',
    );
    expect(readConfig("serve", { ...FLAGS, role: "api" }, env)).toMatchObject({ role: "api", reconciles: true });
    expect(readConfig("serve", { ...FLAGS, role: "worker" }, env)).toMatchObject({ role: "worker", reconciles: false });
  });

  it("is reported when it differs from its default, without secrets", () => {
    const env = {
      API_KEYS: "secret-key",
      PORT: "2024",
      THREADMILL_LEASE: "9s",
      DATABASE_URL: "postgres://u:secret@h/d",
    };
    expect(read(env, { host: "localhost", inline: true }).changed_settings).toEqual({
      "--host": "localhost",
      "--inline": "1",
      API_KEYS: "[set]",
      DATABASE_URL: "[set]",
      THREADMILL_LEASE: "9s",
    });
  });

  it("that this version does not have is reported", () => {
    const env = { THREADMILL_LEASE_MS: "1", THREADMILL_API_KEY: "k", THREADMILL_LEASE: "9s", OTHER: "x" };
    expect(read(env).unknown_variables).toEqual(["THREADMILL_LEASE_MS"]);
  });
});
