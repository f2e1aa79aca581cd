import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Database, Tx } from "../../platform/database/database.ts";
import { byIds, insertMany } from "../../platform/database/insert-many.ts";
import { compileExampleFilter, found } from "./compile-filter.ts";
import type { RunFilter } from "./run-filter.ts";
import type { ExampleRow, ExampleVersionRow } from "./schema.ts";

/** An example as it is in one of its versions. */
export type VersionedExample = ExampleRow &
  Pick<ExampleVersionRow, "inputs" | "outputs" | "metadata" | "splits"> & { version_at: number };

/** Stores new examples with their first versions, and further versions of old ones. */
export async function insertExamples(tx: Tx, examples: ExampleRow[], versions: ExampleVersionRow[]): Promise<void> {
  await insertMany(tx, "examples", examples);
  await insertMany(tx, "example_versions", versions);
}

/**
 * Tells Postgres' planner of many examples that have just come. Until its own look at them, a minute later, it takes their tables for
 * nearly empty and joins a page's examples to their versions the long way: 2 to 4 ms of the page's 25. It takes 70 ms for 10,000.
 */
export async function analyzeExamples({ read }: Database): Promise<void> {
  if (read.dialect.name === "postgres") await read.run(sql`analyze examples, example_versions`.compile(read.k));
}

/** Points an example at its newest version. */
export const setExampleVersion = (
  tx: Tx,
  example: Pick<ExampleRow, "dataset_no" | "ord" | "version" | "digest" | "deleted" | "modified_at">,
): Promise<number> => {
  const { dataset_no, ord, ...changes } = example;
  return tx.run(tx.k.updateTable("examples").set(changes).where("dataset_no", "=", dataset_no).where("ord", "=", ord));
};

/** Examples of a dataset, also removed ones, by the ids that uploads gave them, or by their own. */
export const examplesBy = (
  tx: Tx,
  column: "row_id" | "example_id",
  dataset_no: number,
  ids: string[],
): Promise<ExampleRow[]> =>
  byIds(ids, (some) =>
    tx.all(tx.k.selectFrom("examples").selectAll().where("dataset_no", "=", dataset_no).where(column, "in", some)),
  );

/** Which of these ids some example of the workspace has. */
export async function takenExampleIds(tx: Tx, tenant_id: string, ids: string[]): Promise<Set<string>> {
  const rows = await byIds(ids, (some) =>
    tx.all(
      tx.k
        .selectFrom("examples")
        .select("example_id")
        .where("tenant_id", "=", tenant_id)
        .where("example_id", "in", some),
    ),
  );
  return new Set(rows.map((row) => row.example_id));
}

export interface ExampleFilter {
  dataset_no?: number | undefined;
  id?: string[] | undefined;
  /** Milliseconds; the newest versions when missing. */
  as_of?: number | undefined;
  metadata?: object | undefined;
  splits?: string[] | undefined;
  text?: string[] | undefined;
  /** About metadata and text. */
  filters?: RunFilter[] | undefined;
}

function matching(tx: Tx, tenant_id: string, filter: ExampleFilter) {
  let query = tx.k
    .selectFrom("examples as e")
    .innerJoin("example_versions as v", (join) =>
      join.onRef("v.dataset_no", "=", "e.dataset_no").onRef("v.ord", "=", "e.ord"),
    )
    .where("e.tenant_id", "=", tenant_id)
    .where("v.deleted", "=", 0);
  const { as_of } = filter;
  if (as_of === undefined) query = query.whereRef("v.version", "=", "e.version");
  else
    query = query.where((where) =>
      where(
        "v.version",
        "=",
        where
          .selectFrom("example_versions as w")
          .whereRef("w.dataset_no", "=", "e.dataset_no")
          .whereRef("w.ord", "=", "e.ord")
          .where("w.created_at", "<=", as_of)
          .select((w) => w.fn.max("w.version").as("version")),
      ),
    );
  if (filter.dataset_no !== undefined) query = query.where("e.dataset_no", "=", filter.dataset_no);
  if (filter.id) query = query.where("e.example_id", "in", filter.id);
  if (filter.metadata)
    query = query.where(sql<boolean>`json_contains(coalesce(v.metadata, '{}'), ${JSON.stringify(filter.metadata)})`);
  if (filter.splits && filter.splits.length > 0) {
    const splits = filter.splits;
    query = query.where((where) =>
      where.or(splits.map((split) => sql<boolean>`json_contains(v.splits, ${JSON.stringify([split])})`)),
    );
  }
  for (const part of filter.text ?? []) query = query.where(found(tx, part, [sql`v.inputs`, sql`v.outputs`]));
  for (const one of filter.filters ?? []) query = query.where(compileExampleFilter(tx, one));
  return query;
}

export type ExampleOrder = "recent" | "recently_created" | "id" | "random";

/** A page of examples. `random` gives the same order to the same seed. */
export function listExamples(
  tx: Tx,
  tenant_id: string,
  filter: ExampleFilter,
  page: { order: ExampleOrder; descending: boolean; seed: number; limit: number; offset: number },
): Promise<VersionedExample[]> {
  const direction = page.descending ? "desc" : "asc";
  let query = matching(tx, tenant_id, filter)
    .selectAll("e")
    .select(["v.version", "v.inputs", "v.outputs", "v.metadata", "v.splits", "v.created_at as version_at"]);
  if (page.order === "recent") query = query.orderBy("e.modified_at", direction);
  if (page.order === "recently_created") query = query.orderBy("e.created_at", direction);
  if (page.order === "id") query = query.orderBy("e.example_id", direction);
  if (page.order === "random") query = query.orderBy(shuffled(page.seed));
  // Examples that came together are shown in the order in which they came.
  return tx.all(query.orderBy("e.dataset_no").orderBy("e.ord").limit(page.limit).offset(page.offset)) as Promise<
    VersionedExample[]
  >;
}

/** A prime: each place of a dataset gets a number of its own below it. */
const SHUFFLE_MODULUS = 4_294_967_291;

/** Another order of the places for each seed, and the same one for the same. */
function shuffled(seed: number) {
  const hash = createHash("sha1").update(String(seed)).digest();
  // Not 0, or all places would get one number; small enough that the product stays within 63 bits.
  const factor = 1 + (hash.readUInt32LE(0) % 2 ** 31);
  return sql`(cast(e.ord as bigint) * cast(${factor} as bigint) + cast(${hash.readUInt32LE(4)} as bigint)) % ${sql.lit(SHUFFLE_MODULUS)}`;
}

export async function countExamples(tx: Tx, tenant_id: string, filter: ExampleFilter): Promise<number> {
  const row = await tx.first(matching(tx, tenant_id, filter).select((s) => s.fn.countAll<number>().as("n")));
  return Number(row?.n ?? 0);
}

/** An example of the workspace, also a removed one. */
export const findExample = (tx: Tx, tenant_id: string, example_id: string): Promise<ExampleRow | undefined> =>
  tx.first(
    tx.k.selectFrom("examples").selectAll().where("tenant_id", "=", tenant_id).where("example_id", "=", example_id),
  );

/** The example in one version. */
export const findVersion = (tx: Tx, example: ExampleRow, version = example.version) =>
  tx.first(
    tx.k
      .selectFrom("example_versions")
      .selectAll()
      .where("dataset_no", "=", example.dataset_no)
      .where("ord", "=", example.ord)
      .where("version", "=", version),
  ) as Promise<ExampleVersionRow | undefined>;

/** The examples at these places, also removed ones, each in its newest version. */
export const examplesAt = (tx: Tx, dataset_no: number, ords: number[]): Promise<VersionedExample[]> =>
  byIds(ords, (some) =>
    tx.all(
      tx.k
        .selectFrom("examples as e")
        .innerJoin("example_versions as v", (join) =>
          join
            .onRef("v.dataset_no", "=", "e.dataset_no")
            .onRef("v.ord", "=", "e.ord")
            .onRef("v.version", "=", "e.version"),
        )
        .selectAll("e")
        .select(["v.inputs", "v.outputs", "v.metadata", "v.splits", "v.created_at as version_at"])
        .where("e.dataset_no", "=", dataset_no)
        .where("e.ord", "in", some),
    ),
  ) as Promise<VersionedExample[]>;

/** What the examples at these places were asked in each of their versions. */
export const inputsAt = (
  tx: Tx,
  dataset_no: number,
  ords: number[],
): Promise<Pick<ExampleVersionRow, "ord" | "version" | "inputs">[]> =>
  byIds(ords, (some) =>
    tx.all(
      tx.k
        .selectFrom("example_versions")
        .select(["ord", "version", "inputs"])
        .where("dataset_no", "=", dataset_no)
        .where("ord", "in", some),
    ),
  );

/** All places of a dataset with the ids of their examples; removed ones say so. */
export const placesOf = (tx: Tx, dataset_no: number): Promise<Pick<ExampleRow, "ord" | "example_id" | "deleted">[]> =>
  tx.all(
    tx.k
      .selectFrom("examples")
      .select(["ord", "example_id", "deleted"])
      .where("dataset_no", "=", dataset_no)
      .orderBy("ord"),
  );

/** The places of the examples that meet the filters, which are about metadata and text; in no order. */
export function placesOfText(tx: Tx, dataset_no: number, filters: RunFilter[]): Promise<Pick<ExampleRow, "ord">[]> {
  let query = tx.k
    .selectFrom("examples as e")
    .innerJoin("example_versions as v", (join) =>
      join.onRef("v.dataset_no", "=", "e.dataset_no").onRef("v.ord", "=", "e.ord").onRef("v.version", "=", "e.version"),
    )
    .select("e.ord")
    .where("e.dataset_no", "=", dataset_no);
  for (const filter of filters) query = query.where(compileExampleFilter(tx, filter));
  return tx.all(query);
}

/** The places of the examples that were removed. */
export async function removedPlacesOf(tx: Tx, dataset_no: number): Promise<number[]> {
  const rows = await tx.all(
    tx.k
      .selectFrom("examples")
      .select("ord")
      .where("dataset_no", "=", dataset_no)
      .where("deleted", "=", 1)
      .orderBy("ord"),
  );
  return rows.map(({ ord }) => ord);
}

/** The moments at which examples of a dataset changed, newest first. */
export const versionTimes = (tx: Tx, dataset_no: number, limit: number, offset: number): Promise<{ at: number }[]> =>
  tx.all(
    tx.k
      .selectFrom("example_versions")
      .select("created_at as at")
      .distinct()
      .where("dataset_no", "=", dataset_no)
      .orderBy("at", "desc")
      .limit(limit)
      .offset(offset),
  );
