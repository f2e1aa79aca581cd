import { type Expression, type SqlBool, sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";
import type { DatasetTagRow } from "./schema.ts";

interface VersionSearch {
  /** A version must have a tag that contains this text. */
  search?: string | undefined;
  /** The id of an example that must have changed in the version. */
  example?: string | undefined;
  limit: number;
  offset: number;
}

/** The times at which examples of a dataset changed, newest first. */
export function versionTimes(tx: Tx, dataset_no: number, search: VersionSearch): Promise<{ at: number }[]> {
  let query = tx.k
    .selectFrom("example_versions as v")
    .select("v.created_at as at")
    .distinct()
    .where("v.dataset_no", "=", dataset_no);
  if (search.example !== undefined) {
    const { example } = search;
    const index = tx.k.selectFrom("examples as e").select("e.example_index").where("e.dataset_no", "=", dataset_no);
    query = query.where("v.example_index", "in", index.where("e.example_id", "=", example));
  }
  if (search.search !== undefined) {
    const tags = tx.k.selectFrom("dataset_tags as t").select("t.version_at").where("t.dataset_no", "=", dataset_no);
    const contains: Expression<SqlBool> = tx.dialect.containsText(sql.ref("t.tag"), search.search);
    query = query.where("v.created_at", "in", tags.where(contains));
  }
  return tx.all(query.orderBy("at", "desc").limit(search.limit).offset(search.offset));
}

/**
 * The newest time at which examples changed; with `until`, at or before this time in milliseconds. There is no index by time: SQLite
 * would use it for `as_of`, which took 145 s for a page of 10,000 examples.
 */
export async function newestVersionTime(tx: Tx, dataset_no: number, until?: number): Promise<number | undefined> {
  const newest = await tx.first(
    tx.k
      .selectFrom("examples")
      .select((example) => example.fn.max("modified_at").as("at"))
      .where("dataset_no", "=", dataset_no),
  );
  if (newest?.at === null || newest?.at === undefined) return undefined;
  if (until === undefined || Number(newest.at) <= until) return Number(newest.at);
  const older = await tx.first(
    tx.k
      .selectFrom("example_versions")
      .select((version) => version.fn.max("created_at").as("at"))
      .where("dataset_no", "=", dataset_no)
      .where("created_at", "<=", until),
  );
  return older?.at === null || older?.at === undefined ? undefined : Number(older.at);
}

export const datasetTags = (tx: Tx, dataset_no: number): Promise<DatasetTagRow[]> =>
  tx.all(
    tx.k
      .selectFrom("dataset_tags")
      .selectAll()
      .where("dataset_no", "=", dataset_no)
      .orderBy("version_at")
      .orderBy("tag"),
  );

/** Adds a tag, or moves it to another version. */
export async function putDatasetTag(tx: Tx, row: DatasetTagRow): Promise<void> {
  const { version_at } = row;
  await tx.run(
    tx.k
      .insertInto("dataset_tags")
      .values(row)
      .onConflict((conflict) => conflict.columns(["dataset_no", "tag"]).doUpdateSet({ version_at })),
  );
}

/** The version of each example of a dataset at the time `at` (milliseconds). Omits examples that were deleted at that time. */
export const versionsAt = (
  tx: Tx,
  dataset_no: number,
  at: number,
): Promise<{ example_id: string; version: number }[]> =>
  tx.all(
    tx.k
      .selectFrom("examples as e")
      .innerJoin("example_versions as v", (join) =>
        join.onRef("v.dataset_no", "=", "e.dataset_no").onRef("v.example_index", "=", "e.example_index"),
      )
      .select(["e.example_id", "v.version"])
      .where("e.dataset_no", "=", dataset_no)
      .where("v.deleted", "=", 0)
      .where((where) =>
        where(
          "v.version",
          "=",
          where
            .selectFrom("example_versions as w")
            .whereRef("w.dataset_no", "=", "e.dataset_no")
            .whereRef("w.example_index", "=", "e.example_index")
            .where("w.created_at", "<=", at)
            .select((w) => w.fn.max("w.version").as("version")),
        ),
      ),
  );
