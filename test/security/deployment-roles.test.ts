import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { MIGRATIONS } from "../../src/app/compose/migrations.ts";
import { deploymentDatabases } from "../../src/control-plane/drivers/deployment-data.ts";
import { migrate } from "../../src/platform/database/migrate.ts";
import { openPostgres } from "../../src/platform/database/postgres/postgres.ts";
import { createLog } from "../../src/platform/lib/log.ts";
import { createDatabase, databases, type TestDatabase } from "../support/databases.ts";
import { execute } from "../support/postgres.ts";
import { openTestStorage, type TestStorage } from "../support/storage.ts";

/** Finding 2 of the security review: a deployment on Postgres logged in as the service. */
describe.skipIf(!databases.includes("postgres"))("the Postgres role of a deployment", () => {
  let service: TestStorage;
  let service_url: string;
  beforeAll(async () => {
    service = await openTestStorage("postgres");
    service_url = service.at.url as string;
  });
  afterAll(() => service.close());

  const own = (url = service_url) => deploymentDatabases(service.database, url);
  const schemaOf = (id: string) => `deployment_${id.replaceAll("-", "")}`;
  const specFor = (deployment_id: string = randomUUID()) => ({
    deployment_id,
    database_password: `secret-${randomUUID()}`,
  });
  const made = async (order = specFor()) => ({ ...order, url: (await own().of(order)) as string });

  it("is not the service's, and the address has nothing else of the service's login", async () => {
    const order = specFor();
    const login = new URL(service_url);
    [login.username, login.password] = ["postgres", "the-password-of-the-service"];
    login.search =
      "?user=postgres&password=another&sslkey=/keys/mine&sslmode=disable&options=-c%20statement_timeout%3D0";
    const url = new URL((await own(login.href).of(order)) as string);
    expect(url.username).toMatch(new RegExp(`^${schemaOf(order.deployment_id)}_\\d+$`));
    expect(url.password).toBe(order.database_password);
    expect([...url.searchParams.keys()].sort()).toEqual(["options", "sslmode"]);
    expect(url.href).not.toMatch(/the-password-of-the-service|another|keys/);
    await own().drop(order.deployment_id);
  });

  it("owns its schema, in which it keeps what an agent server keeps", async () => {
    const { url, deployment_id } = await made();
    const database = openPostgres({ url, log: createLog("silent") });
    await migrate(database, MIGRATIONS.agents);
    await database.close();
    const [row] = await execute(
      url,
      "select schemaname, tableowner from pg_tables where tablename = 'threads' and schemaname <> 'public'",
    );
    expect(row).toEqual({ schemaname: schemaOf(deployment_id), tableowner: new URL(url).username });
    await own().drop(deployment_id);
  });

  it.each([
    "select * from public.threads",
    "select * from public.api_keys",
    "delete from public.runs",
    "create table public.mine (id int)",
    "create function public.lower(text) returns text language sql as 'select $1'",
    "create schema another",
    "create role another",
    "set role postgres",
    "select pg_read_file('/etc/passwd')",
    "copy (select 1) to program 'id'",
  ])("may not %s", async (statement) => {
    const { url, deployment_id } = await made();
    await expect(execute(url, statement)).rejects.toThrow(/permission denied|must be superuser/);
    await own().drop(deployment_id);
  });

  it("reaches nothing of another deployment", async () => {
    const [one, two] = [await made(), await made()];
    await execute(one.url, "create table secrets (id int)");
    const table = `${schemaOf(one.deployment_id)}.secrets`;
    for (const statement of [`select * from ${table}`, `set role ${new URL(one.url).username}`])
      await expect(execute(two.url, statement)).rejects.toThrow("permission denied");
    for (const { deployment_id } of [one, two]) await own().drop(deployment_id);
  });

  it("takes over what an earlier version has made as the service, at the next start of an instance", async () => {
    const order = specFor();
    const schema = schemaOf(order.deployment_id);
    await execute(service_url, `create schema ${schema}`);
    const before = openPostgres({
      url: `${service_url}?options=-c%20search_path%3D${schema}`,
      log: createLog("silent"),
    });
    await migrate(before, MIGRATIONS.agents);
    await before.close();
    await execute(service_url, `insert into ${schema}.schema_migrations values ('000-marker', 0)`);

    const { url } = await made(order);
    expect(await execute(url, "delete from schema_migrations where name = '000-marker' returning name")).toHaveLength(
      1,
    );
    const owners = `select distinct pg_get_userbyid(owner) as owner from (
      select relowner as owner, relnamespace as schema from pg_class union select proowner, pronamespace from pg_proc) as everything
      where schema = '${schema}'::regnamespace`;
    expect(await execute(service_url, owners)).toEqual([{ owner: new URL(url).username }]);
    await own().drop(order.deployment_id);
  });

  it("is deleted with its deployment, even by a repeated request", async () => {
    const { url, deployment_id } = await made();
    await execute(url, "create table mine (id int)");
    for (let i = 0; i < 2; i++) await own().drop(deployment_id);
    const role = new URL(url).username;
    expect(await execute(service_url, `select 1 from pg_roles where rolname = '${role}'`)).toEqual([]);
    expect(
      await execute(service_url, `select 1 from pg_namespace where nspname = '${schemaOf(deployment_id)}'`),
    ).toEqual([]);
  });

  describe("of a service whose user is not a superuser", () => {
    const user = `limited_${randomBytes(4).toString("hex")}`;
    let at: TestDatabase;
    afterEach(async () => {
      await at.drop();
      await execute(service_url, `drop role ${user}`);
    });
    const limited = async (rights: string) => {
      at = await createDatabase("postgres", { empty: true });
      await execute(service_url, `create role ${user} login ${rights}`);
      await execute(service_url, `alter database ${new URL(at.url as string).pathname.slice(1)} owner to ${user}`);
      const url = new URL(at.url as string);
      url.username = user;
      return { url: url.href, database: openPostgres({ url: url.href, log: createLog("silent") }) };
    };

    it("is created with the privilege to create roles", async () => {
      const { url, database } = await limited("createrole");
      await migrate(database, MIGRATIONS.agents);
      const order = specFor();
      const reached = (await deploymentDatabases(database, url).of(order)) as string;
      await execute(reached, "create table mine (id int)");
      await expect(execute(reached, "select * from public.threads")).rejects.toThrow("permission denied");
      await deploymentDatabases(database, url).drop(order.deployment_id);
      await database.close();
    });

    it("is refused without it, with the statement that is to be run", async () => {
      const { url, database } = await limited("");
      await expect(deploymentDatabases(database, url).of(specFor())).rejects.toThrow(
        `ALTER ROLE "${user}" CREATEROLE;`,
      );
      await database.close();
    });

    it("is refused when every role may create objects in the schema of the service", async () => {
      const { url, database } = await limited("createrole");
      await execute(at.url as string, "grant create on schema public to public");
      await expect(deploymentDatabases(database, url).of(specFor())).rejects.toThrow(
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC;",
      );
      await database.close();
    });
  });
});
