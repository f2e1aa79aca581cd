import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../src/platform/database/database.ts";
import { createDatabase, type TestDatabase } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";

/** ASCII letters, the characters whose lower case contains one, other letters with and without case, wildcards of `like`. */
const CHARACTERS = [..."aiIkK%_\\öÖß東 \u0130\u0307\u212a"];

/** Longer than the pattern that excludes texts. */
const LONG = ["😀".repeat(9), `a${"😀".repeat(9)}`, "abcdefg\u0130z", "abcdefghijkl\u0130", `${"%".repeat(9)}\\`];

describe("a search for a text on SQLite", () => {
  let at: TestDatabase;
  let database: Database;
  beforeAll(async () => {
    at = await createDatabase("sqlite");
    database = openOn(at, "experiments.db");
    await database.write((tx) => tx.run(sql`create table texts (text text)`.compile(tx.k)));
  });
  afterAll(async () => {
    await database.close();
    await at.drop();
  });

  async function search(word: string): Promise<string[]> {
    const { dialect, k } = database.read;
    const contains = dialect.containsText(sql.ref("text"), word);
    const query = sql<{ text: string }>`select text from texts where ${contains} order by rowid`;
    return (await database.read.all<{ text: string }>(query.compile(k))).map(({ text }) => text);
  }

  async function replaceTexts(texts: string[]): Promise<void> {
    const rows = JSON.stringify([...texts, null]);
    await database.write(async (tx) => {
      await tx.run(sql`delete from texts`.compile(tx.k));
      await tx.run(sql`insert into texts select value from json_each(${rows})`.compile(tx.k));
    });
  }

  it("ignores case as JavaScript does", async () => {
    const texts = [...allTexts(3), ...LONG];
    await replaceTexts(texts);
    for (const word of [...allTexts(2), ...LONG, "a".repeat(60_000), ""]) {
      const expected = texts.filter((text) => text.toLowerCase().includes(word.toLowerCase()));
      expect(await search(word), JSON.stringify(word.slice(0, 10))).toEqual(expected);
    }
  });

  // Compared as a whole, the pattern would take minutes.
  it("takes no longer with a long word that nearly occurs everywhere", async () => {
    await replaceTexts(["a".repeat(8_000_000)]);
    expect(await search(`${"a".repeat(5_000)}b`)).toEqual([]);
  });
});

/** All texts of 1 to `length` of the characters. */
function allTexts(length: number): string[] {
  if (length === 0) return [];
  const shorter = allTexts(length - 1);
  const longest = shorter.filter((text) => [...text].length === length - 1);
  const starts = length === 1 ? [""] : longest;
  return [...shorter, ...starts.flatMap((start) => CHARACTERS.map((character) => start + character))];
}
