import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { createDatabase } from "../support/databases.ts";
import { openOn } from "../support/storage.ts";

/** ASCII letters, the characters whose lower case contains one, other letters with and without case, wildcards of `like`. */
const CHARACTERS = [..."aiIkK%_\\öÖß東 \u0130\u0307\u212a"];

describe("a search for a text on SQLite", () => {
  it("ignores case as JavaScript does", async () => {
    const at = await createDatabase("sqlite");
    const database = openOn(at, "experiments.db");
    const texts = allTexts(3);
    const words = [...allTexts(2), "東".repeat(16_000), "a".repeat(60_000), "%".repeat(16_000), ""];
    await database.write((tx) => tx.run(sql`create table texts (text text)`.compile(tx.k)));
    const rows = JSON.stringify(texts);
    await database.write((tx) =>
      tx.run(sql`insert into texts select value from json_each(${rows}) union all select null`.compile(tx.k)),
    );
    for (const word of words) {
      const contains = database.read.dialect.containsText(sql.ref("text"), word);
      const found = await database.read.all<{ text: string }>(
        sql<{ text: string }>`select text from texts where ${contains} order by rowid`.compile(database.read.k),
      );
      const expected = texts.filter((text) => text.toLowerCase().includes(word.toLowerCase()));
      expect(
        found.map(({ text }) => text),
        JSON.stringify(word.slice(0, 10)),
      ).toEqual(expected);
    }
    await database.close();
    await at.drop();
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
