import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import type { TestDatabase } from "./databases.ts";
import { openOn } from "./storage.ts";

/** Files of the data folder that hold secrets, and are not the database. */
const KEY_FILES = /^encryption\.keys/;

/**
 * Where a database has one of some secret texts in the clear, or in a common spelling of it: files of the data folder by their
 * names, tables of Postgres by theirs. The files are read byte by byte, with what SQLite has only logged or already deleted.
 */
export async function placesOfSecrets(at: TestDatabase, secrets: readonly string[]): Promise<string[]> {
  const spelled = [...new Set(secrets.flatMap(spellings))];
  const inFiles = filesOf(at.data_dir).filter((file) => {
    const bytes = readFileSync(join(at.data_dir, file));
    return spelled.some((text) => bytes.includes(text));
  });
  return [...inFiles, ...(at.url === undefined ? [] : await tablesWith(at, spelled))];
}

function spellings(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const json = JSON.stringify(secret).slice(1, -1);
  return [
    secret,
    json,
    encodeURIComponent(secret),
    bytes.toString("hex"),
    bytes.toString("base64url"),
    bytes.toString("base64"),
  ];
}

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (file) => !KEY_FILES.test(file) && statSync(join(folder, file)).isFile(),
  );

async function tablesWith(at: TestDatabase, texts: string[]): Promise<string[]> {
  const database = openOn(at);
  try {
    const { read } = database;
    const tables = await read.all(
      sql<{ name: string }>`select tablename as name from pg_tables where schemaname = 'public'`.compile(read.k),
    );
    const found: string[] = [];
    for (const { name } of tables) {
      // A row as text has all of its columns; bytes are in hex.
      const has = sql.join(
        texts.map((text) => sql`strpos(t::text, ${text}) > 0`),
        sql` or `,
      );
      const row = await read.first(sql`select 1 from ${sql.table(name)} as t where ${has} limit 1`.compile(read.k));
      if (row) found.push(name);
    }
    return found;
  } finally {
    await database.close();
  }
}
