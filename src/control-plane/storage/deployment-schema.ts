import { type RawBuilder, sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";

/** The privileges in Postgres are insufficient or unsafe. The message contains the statement that a superuser must run. */
export class MissingPrivilegeError extends Error {}

/**
 * Creates the Postgres schema of a deployment's threads and runs, and a role that owns only this schema. Objects that an earlier
 * version created as the service's Postgres user are transferred to the role.
 *
 * @returns the name of the role
 * @throws MissingPrivilegeError
 */
export async function ensureDeploymentSchema(tx: Tx, name: string, password: string): Promise<string> {
  const execute = (statement: RawBuilder<unknown>) => tx.run(statement.compile(tx.k));
  const { role, exists } = await roleOf(tx, name);
  if (!exists) await requirePrivileges(tx);
  const [schema, owner, secret] = [sql.id(name), sql.id(role), sql.lit(password)];
  await execute(sql`${sql.raw(exists ? "alter" : "create")} role ${owner} login password ${secret}`);
  // Only a member of a role can transfer objects to the role.
  await execute(sql`grant ${owner} to current_user`);
  await execute(sql`create schema if not exists ${schema}`);
  await execute(sql`alter schema ${schema} owner to ${owner}`);
  for (const { kind, quoted_name } of await tx.all(objectsOfOtherOwners(name, role).compile(tx.k)))
    await execute(sql`alter ${sql.raw(kind)} ${sql.raw(quoted_name)} owner to ${owner}`);
  return role;
}

/** Drops the schema with its objects, and the role. */
export async function dropDeploymentSchema(tx: Tx, name: string): Promise<void> {
  await tx.run(sql`drop schema if exists ${sql.id(name)} cascade`.compile(tx.k));
  const { role, exists } = await roleOf(tx, name);
  if (!exists) return;
  await tx.run(sql`drop owned by ${sql.id(role)}`.compile(tx.k));
  await tx.run(sql`drop role ${sql.id(role)}`.compile(tx.k));
}

/** All databases of a server share their roles, so the role name contains the OID of the database. A copied database gets different roles. */
async function roleOf(tx: Tx, name: string): Promise<{ role: string; exists: boolean }> {
  const query = sql<{ role: string; exists: boolean }>`
    select role, exists (select 1 from pg_roles where rolname = role) as exists
    from (select ${name}::text || '_' || oid as role from pg_database where datname = current_database()) as named`;
  return (await tx.first(query.compile(tx.k))) as { role: string; exists: boolean };
}

/** Objects of a schema that are owned by another role, with names quoted by Postgres. Sequences change owner together with their table. */
const objectsOfOtherOwners = (name: string, role: string) => sql<{ kind: "table" | "routine"; quoted_name: string }>`
  select 'table' as kind, c.oid::regclass::text as quoted_name from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = ${name} and c.relkind in ('r', 'p', 'v', 'm', 'S') and pg_get_userbyid(c.relowner) <> ${role}
    and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype in ('a', 'i') and d.refclassid = 'pg_class'::regclass)
  union all
  select 'routine', p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = ${name} and pg_get_userbyid(p.proowner) <> ${role}`;

async function requirePrivileges(tx: Tx): Promise<void> {
  const query = sql<{ name: string; makes_roles: boolean; database: string; is_public_open: boolean }>`
    select current_user as name, rolsuper or rolcreaterole as makes_roles, current_database() as database,
      exists (select 1 from pg_namespace n, aclexplode(n.nspacl) a
        where n.nspname = 'public' and a.grantee = 0 and a.privilege_type = 'CREATE') as is_public_open
    from pg_roles where rolname = current_user`;
  const found = await tx.first(query.compile(tx.k));
  if (!found) return;
  const missing = (problem: string, statement: string) =>
    new MissingPrivilegeError(`${problem} Run this in the database "${found.database}" as a superuser: ${statement};`);
  if (!found.makes_roles)
    throw missing(
      `Each deployment requires its own Postgres role, but the service's role "${found.name}" does not have the CREATEROLE privilege.`,
      `ALTER ROLE "${found.name}" CREATEROLE`,
    );
  // Otherwise the service could use objects that other roles create in this schema instead of the service's objects.
  if (found.is_public_open)
    throw missing(
      'Deployments are not isolated while every Postgres role can create objects in the schema "public".',
      "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    );
}
