import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_TENANT } from "../../src/platform/contract/caller.ts";
import { createDatabase, type DatabaseName, databases, type TestDatabase } from "../support/databases.ts";
import { freePort, runCli, type ServerProcess, startProcess } from "../support/process.ts";

const CONFIG = "test/package/langgraph.json";
const KEY = /^tmk_[a-z2-7]{12}_[\w-]{43}$/;

describe.each(databases)("threadmill keys on %s", (name: DatabaseName) => {
  let at: TestDatabase;
  let server: ServerProcess | undefined;
  beforeEach(async () => {
    at = await createDatabase(name);
  });
  afterEach(async () => {
    server?.child.kill("SIGKILL");
    await server?.ended;
    server = undefined;
    await at.drop();
  });

  const keys = (...args: string[]) =>
    runCli(["keys", ...args, ...(at.url ? ["--database-url", at.url] : ["--data", at.data_dir])]);

  /** A command that must succeed and print JSON. */
  const json = async (...args: string[]) => {
    const { status, stdout, stderr } = await keys(...args, "--json");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    return JSON.parse(stdout);
  };

  const start = async (command: "dev" | "serve"): Promise<ServerProcess> => {
    server = await startProcess({
      command,
      config: CONFIG,
      data: at.data_dir,
      databaseUrl: at.url,
      port: await freePort(),
    });
    return server;
  };
  const statusOf = async (key?: string) => {
    const headers: Record<string, string> = key === undefined ? {} : { "X-Api-Key": key };
    return (await fetch(`${server?.url}/threads`, { method: "POST", body: "{}", headers })).status;
  };

  it("creates a key before the first start, which then requires authentication", async () => {
    const made = await json("create", "--name", "ci", "--user", "alice");
    expect(made).toEqual({
      id: expect.any(String),
      key: expect.stringMatching(KEY),
      tenant_id: DEFAULT_TENANT,
      workspace: "default",
      user: "alice",
      name: "ci",
      scopes: ["agents", "experiments", "tokens"],
    });
    await start("serve");
    expect([await statusOf(), await statusOf(made.key)]).toEqual([401, 200]);
  });

  it("creates and revokes keys while a service runs, which applies them immediately", async () => {
    await start("dev");
    expect(await statusOf()).toBe(200);
    const first = await json("create", "--name", "one", "--user", "alice");
    expect([await statusOf(), await statusOf(first.key)]).toEqual([401, 200]);
    const second = await json("create", "--name", "two", "--user", "bob", "--scope", "agents", "--scope", "admin");
    expect(second.scopes).toEqual(["agents", "admin"]);
    const revoked = await keys("revoke", first.id);
    expect(revoked).toMatchObject({ status: 0, stdout: `Revoked API key ${first.id}.\n` });
    expect([await statusOf(), await statusOf(first.key), await statusOf(second.key)]).toEqual([401, 401, 200]);
    // Whoever has found a whole key may name it by that.
    expect((await keys("revoke", second.key)).status).toBe(0);
    expect(await statusOf(second.key)).toBe(401);
  });

  it("creates the workspace of a key by name or id, and finds it again", async () => {
    const create = (workspace: string) => json("create", "--name", "n", "--user", "u", "--workspace", workspace);
    const [byName, again] = [await create("research"), await create("research")];
    expect(byName).toMatchObject({ workspace: "research", tenant_id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    expect(again.tenant_id).toBe(byName.tenant_id);
    expect((await create(byName.tenant_id)).workspace).toBe("research");
    const id = "7e57aaaa-0000-4000-8000-000000000000";
    expect(await create(id.toUpperCase())).toMatchObject({ tenant_id: id, workspace: id });
    expect((await create("default")).tenant_id).toBe(DEFAULT_TENANT);
    expect((await create(DEFAULT_TENANT)).workspace).toBe("default");
  });

  it("lists the metadata of keys, but not the keys", async () => {
    expect(await json("list")).toEqual([]);
    expect((await keys("list")).stdout).toBe("There are no API keys.\n");
    const { key, ...made } = await json("create", "--name", "for CI", "--user", "alice", "--workspace", "research");
    const other = await json("create", "--name", "n", "--user", "bob");
    await keys("revoke", other.id);
    const listed = await json("list");
    expect(listed.map(({ id }: { id: string }) => id)).toEqual([other.id, made.id]);
    expect(listed[1]).toEqual({ ...made, created_at: expect.any(String), last_used_at: null, revoked_at: null });
    expect(listed[0].revoked_at).toEqual(expect.any(String));
    const { stdout } = await keys("list");
    expect(stdout).toMatch(new RegExp(`^${made.id} +active +alice +research +never +agents,.*for CI$`, "m"));
    expect(stdout).toMatch(new RegExp(`^${other.id} +revoked +bob +default`, "m"));
    expect(stdout + JSON.stringify(listed)).not.toContain(key.slice(17));
  });

  it("prints how to use a key", async () => {
    const { stdout } = await keys("create", "--name", "n", "--user", "alice", "--workspace", "research");
    expect(stdout).toContain('for alice in workspace "research"');
    expect(stdout.split("\n").map((line) => line.trim())).toContainEqual(expect.stringMatching(KEY));
    expect(stdout).toContain("X-Api-Key");
  });

  it("leaves no key in the files", async () => {
    const { key } = await json("create", "--name", "n", "--user", "u");
    const files = globSync("**/*", { cwd: at.data_dir }).map((file) => readFileSync(join(at.data_dir, file)));
    expect(Buffer.concat(files).includes(key.slice(17))).toBe(false);
    if (name === "sqlite") expect(Buffer.concat(files).includes(key.slice(4, 16))).toBe(true);
  });
});

describe("a mistake with threadmill keys", () => {
  it.each<[string[], string]>([
    [["create", "--user", "u"], "--name"],
    [["create", "--name", "n"], "--user"],
    [["create", "--name", " ", "--user", "u"], "1 to 256 characters"],
    [["create", "--name", "n", "--user", "u", "--scope", "everything"], "Allowed choices are agents"],
    [["create", "--name", "n", "--user", "u", "--database-url", "mysql://x"], "must have the form postgres://"],
    [["revoke"], "missing required argument"],
    [["revoke", "nothing"], 'There is no API key with the ID "nothing"'],
    [["rotate"], "rotate"],
  ])("(%j) ends the command with status 2 and one sentence that helps", async (args, sentence) => {
    const at = await createDatabase("sqlite");
    const { status, stdout, stderr } = await runCli(["keys", ...args, "--data", at.data_dir]);
    await at.drop();
    expect({ status, stdout, stderr }).toEqual({ status: 2, stdout: "", stderr: expect.stringContaining(sentence) });
    expect(stderr.trim().split("\n").length).toBeLessThanOrEqual(2);
  });
});
