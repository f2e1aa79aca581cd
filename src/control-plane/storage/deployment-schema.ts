import { type RawBuilder, sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";

/** What the service's own user may not do, and deployments need: in a sentence, with the statement that a superuser is to run. */
export class MissingRightError extends Error {}

/**
 * Makes the Postgres schema in which a deployment keeps its threads and runs, and a role that owns it and nothing else. What an
 * earlier version has made there as the service's own user becomes the role's.
 *
 * @returns the name of the role
 * @throws MissingRightError
 */
export async function ensureOwnSchema(tx: Tx, name: string, password: string): Promise<string> {
  const execute = (statement: RawBuilder<unknown>) => tx.run(statement.compile(tx.k));
  const { role, exists } = await roleOf(tx, name);
  if (!exists) await requireRights(tx);
  const [schema, owner, secret] = [sql.id(name), sql.id(role), sql.lit(password)];
  await execute(sql`${sql.raw(exists ? "alter" : "create")} role ${owner} login password ${secret}`);
  // Whoever makes a role the owner of something, or takes it back, has to be a member.
  await execute(sql`grant ${owner} to current_user`);
  await execute(sql`create schema if not exists ${schema}`);
  await execute(sql`alter schema ${schema} owner to ${owner}`);
  for (const { kind, named } of await tx.all(ofOthers(name, role).compile(tx.k)))
    await execute(sql`alter ${sql.raw(kind)} ${sql.raw(named)} owner to ${owner}`);
  return role;
}

/** Drops both, with everything that is in the schema. */
export async function dropOwnSchema(tx: Tx, name: string): Promise<void> {
  await tx.run(sql`drop schema if exists ${sql.id(name)} cascade`.compile(tx.k));
  const { role, exists } = await roleOf(tx, name);
  if (!exists) return;
  await tx.run(sql`drop owned by ${sql.id(role)}`.compile(tx.k));
  await tx.run(sql`drop role ${sql.id(role)}`.compile(tx.k));
}

/** Roles are the same in all databases of a server, so the name says which one it is for: a copy of the database has its own. */
async function roleOf(tx: Tx, name: string): Promise<{ role: string; exists: boolean }> {
  const query = sql<{ role: string; exists: boolean }>`
    select role, exists (select 1 from pg_roles where rolname = role) as exists
    from (select ${name}::text || '_' || oid as role from pg_database where datname = current_database()) as named`;
  return (await tx.first(query.compile(tx.k))) as { role: string; exists: boolean };
}

/** What belongs to another role in a schema, quoted by Postgres; a table takes its own sequences along. */
const ofOthers = (name: string, role: string) => sql<{ kind: "table" | "routine"; named: string }>`
  select 'table' as kind, c.oid::regclass::text as named from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = ${name} and c.relkind in ('r', 'p', 'v', 'm', 'S') and pg_get_userbyid(c.relowner) <> ${role}
    and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype in ('a', 'i') and d.refclassid = 'pg_class'::regclass)
  union all
  select 'routine', p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = ${name} and pg_get_userbyid(p.proowner) <> ${role}`;

async function requireRights(tx: Tx): Promise<void> {
  const query = sql<{ name: string; makes_roles: boolean; database: string; is_public_open: boolean }>`
    select current_user as name, rolsuper or rolcreaterole as makes_roles, current_database() as database,
      exists (select 1 from pg_namespace n, aclexplode(n.nspacl) a
        where n.nspname = 'public' and a.grantee = 0 and a.privilege_type = 'CREATE') as is_public_open
    from pg_roles where rolname = current_user`;
  const found = await tx.first(query.compile(tx.k));
  if (!found) return;
  const missing = (what: string, statement: string) =>
    new MissingRightError(`${what} Run this in the database "${found.database}" as a superuser: ${statement};`);
  if (!found.makes_roles)
    throw missing(
      `Each deployment has a Postgres role of its own, and "${found.name}" may not make one.`,
      `ALTER ROLE "${found.name}" CREATEROLE`,
    );
  // What others put there could be found by the service in place of its own.
  if (found.is_public_open)
    throw missing(
      'Every Postgres role may make things in the schema "public".',
      "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    );
}
