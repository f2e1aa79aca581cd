import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Database, Tx } from "../../platform/database/database.ts";
import { byIds, insertMany } from "../../platform/database/insert-many.ts";
import { anyContains, compileExampleFilter } from "./compile-filter.ts";
import type { RunFilter } from "./run-filter.ts";
import type { ExampleRow, ExampleVersionRow } from "./schema.ts";

/** An example in one of its versions. */
export type VersionedExample = ExampleRow &
  Pick<ExampleVersionRow, "inputs" | "outputs" | "metadata" | "splits"> & { version_at: number };

export async function insertExamples(tx: Tx, examples: ExampleRow[], versions: ExampleVersionRow[]): Promise<void> {
  await insertMany(tx, "examples", examples);
  await insertMany(tx, "example_versions", versions);
}

/**
 * Updates the planner statistics of Postgres after many inserts. Until autovacuum runs, the planner assumes nearly empty tables and
 * chooses a join of examples and versions that adds 2 to 4 ms to each page. Takes 70 ms for 10,000 rows.
 */
export async function analyzeExamples({ read }: Database): Promise<void> {
  if (read.dialect.name === "postgres") await read.run(sql`analyze examples, example_versions`.compile(read.k));
}

export const setExampleVersion = (
  tx: Tx,
  example: Pick<ExampleRow, "dataset_no" | "example_index" | "version" | "digest" | "deleted" | "modified_at">,
): Promise<number> => {
  const { dataset_no, example_index, ...changes } = example;
  return tx.run(
    tx.k
      .updateTable("examples")
      .set(changes)
      .where("dataset_no", "=", dataset_no)
      .where("example_index", "=", example_index),
  );
};

const selectExamples = (tx: Tx) => tx.k.selectFrom("examples").selectAll();

/** Finds examples of a dataset by `row_id` or `example_id`, including deleted examples. */
export const examplesBy = (
  tx: Tx,
  column: "row_id" | "example_id",
  dataset_no: number,
  ids: string[],
): Promise<ExampleRow[]> =>
  byIds(ids, (batch) => tx.all(selectExamples(tx).where("dataset_no", "=", dataset_no).where(column, "in", batch)));

/** Returns those of the given ids that examples of the workspace already use. */
export async function takenExampleIds(tx: Tx, tenant_id: string, ids: string[]): Promise<Set<string>> {
  const used = tx.k.selectFrom("examples").select("example_id").where("tenant_id", "=", tenant_id);
  const rows = await byIds(ids, (batch) => tx.all(used.where("example_id", "in", batch)));
  return new Set(rows.map((row) => row.example_id));
}

export interface ExampleFilter {
  dataset_no?: number | undefined;
  id?: string[] | undefined;
  /** Milliseconds since the epoch; the default is the newest version. */
  as_of?: number | undefined;
  /** Selects only examples after this index, so that pages need no offset. */
  after_index?: number | undefined;
  metadata?: object | undefined;
  splits?: string[] | undefined;
  text?: string[] | undefined;
  /** May contain only conditions on metadata and text. */
  filters?: RunFilter[] | undefined;
}

/** The split of an example that has no other. */
export const BASE_SPLIT = "base";

function matching(tx: Tx, tenant_id: string, filter: ExampleFilter) {
  let query = tx.k
    .selectFrom("examples as e")
    .innerJoin("example_versions as v", (join) =>
      join.onRef("v.dataset_no", "=", "e.dataset_no").onRef("v.example_index", "=", "e.example_index"),
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
          .whereRef("w.example_index", "=", "e.example_index")
          .where("w.created_at", "<=", as_of)
          .select((w) => w.fn.max("w.version").as("version")),
      ),
    );
  if (filter.dataset_no !== undefined) query = query.where("e.dataset_no", "=", filter.dataset_no);
  if (filter.after_index !== undefined) query = query.where("e.example_index", ">", filter.after_index);
  if (filter.id) query = query.where("e.example_id", "in", filter.id);
  if (filter.metadata)
    query = query.where(sql<boolean>`json_contains(coalesce(v.metadata, '{}'), ${JSON.stringify(filter.metadata)})`);
  if (filter.splits && filter.splits.length > 0) {
    const splits = filter.splits;
    query = query.where((where) =>
      where.or([
        ...splits.map((split) => sql<boolean>`json_contains(v.splits, ${JSON.stringify([split])})`),
        ...(splits.includes(BASE_SPLIT) ? [where("v.splits", "=", "[]")] : []),
      ]),
    );
  }
  for (const part of filter.text ?? []) query = query.where(anyContains(tx, part, [sql`v.inputs`, sql`v.outputs`]));
  for (const condition of filter.filters ?? []) query = query.where(compileExampleFilter(tx, condition));
  return query;
}

export type ExampleOrder = "recent" | "recently_created" | "id" | "index" | "random";

/** A page of examples. The order `random` is the same for the same seed. */
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
  // Sorting by index last keeps the order of examples that were added by the same request.
  return tx.all(
    query.orderBy("e.dataset_no").orderBy("e.example_index").limit(page.limit).offset(page.offset),
  ) as Promise<VersionedExample[]>;
}

/** A prime, so that the shuffle maps each example index of a dataset to a different number. */
const SHUFFLE_MODULUS = 4_294_967_291;

/** A pseudorandom order of the examples for each seed. */
function shuffled(seed: number) {
  const hash = createHash("sha1").update(String(seed)).digest();
  // Not 0, which would map all indexes to one number; small enough that the product fits into 63 bits.
  const factor = 1 + (hash.readUInt32LE(0) % 2 ** 31);
  return sql`(cast(e.example_index as bigint) * cast(${factor} as bigint) + cast(${hash.readUInt32LE(4)} as bigint)) % ${sql.lit(SHUFFLE_MODULUS)}`;
}

export async function countExamples(tx: Tx, tenant_id: string, filter: ExampleFilter): Promise<number> {
  const row = await tx.first(matching(tx, tenant_id, filter).select((s) => s.fn.countAll<number>().as("n")));
  return Number(row?.n ?? 0);
}

/** The names of the splits of a dataset, in alphabetical order. */
export async function listSplits(tx: Tx, tenant_id: string, dataset_no: number, as_of?: number): Promise<string[]> {
  const rows = await tx.all(matching(tx, tenant_id, { dataset_no, as_of }).select("v.splits").distinct());
  const splits = rows.map((row) => JSON.parse(row.splits) as string[]);
  return [...new Set(splits.flatMap((names) => (names.length === 0 ? BASE_SPLIT : names)))].sort();
}

/** The newest versions of the examples of a dataset with these ids, without deleted examples. */
export const newestVersionsById = (tx: Tx, dataset_no: number, ids: string[]) =>
  byIds(ids, (batch) =>
    tx.all(
      newestVersions(tx, dataset_no)
        .selectAll("v")
        .select("e.example_id")
        .where("e.deleted", "=", 0)
        .where("e.example_id", "in", batch),
    ),
  );

/** Increments the version of examples whose inputs and outputs are unchanged. */
export async function incrementVersions(
  tx: Tx,
  dataset_no: number,
  example_indexes: number[],
  modified_at: number,
): Promise<void> {
  await byIds(example_indexes, async (batch) => {
    await tx.run(
      tx.k
        .updateTable("examples")
        .set((example) => ({ version: example("version", "+", 1), modified_at }))
        .where("dataset_no", "=", dataset_no)
        .where("example_index", "in", batch),
    );
    return [];
  });
}

/**
 * Deletes the content of an example in all its versions, its attachments, and its inputs in uploaded runs. The rows remain without
 * content, because runs and indexes refer to them.
 */
export async function eraseExample(tx: Tx, { dataset_no, example_index }: ExampleRow): Promise<void> {
  const attachments = tx.k.deleteFrom("example_attachments").where("dataset_no", "=", dataset_no);
  await tx.run(attachments.where("example_index", "=", example_index));
  await tx.run(
    tx.k
      .updateTable("example_versions")
      .set({ inputs: "{}", outputs: null, metadata: null, splits: "[]", deleted: 1 })
      .where("dataset_no", "=", dataset_no)
      .where("example_index", "=", example_index),
  );
  const experiments = tx.k.selectFrom("experiments").select("experiment_no").where("dataset_no", "=", dataset_no);
  await tx.run(
    tx.k
      .updateTable("experiment_runs")
      .set({ inputs_preview: "{}" })
      .where("experiment_no", "in", experiments)
      .where("example_index", "=", example_index)
      .where("is_traced", "=", 0),
  );
}

/** Finds an example of the workspace, including deleted examples. */
export const findExample = (tx: Tx, tenant_id: string, example_id: string): Promise<ExampleRow | undefined> =>
  tx.first(selectExamples(tx).where("tenant_id", "=", tenant_id).where("example_id", "=", example_id));

export const findVersion = (tx: Tx, example: ExampleRow, version = example.version) =>
  tx.first(
    tx.k
      .selectFrom("example_versions")
      .selectAll()
      .where("dataset_no", "=", example.dataset_no)
      .where("example_index", "=", example.example_index)
      .where("version", "=", version),
  ) as Promise<ExampleVersionRow | undefined>;

/** `e` are the examples of a dataset and `v` their newest versions. */
const newestVersions = (tx: Tx, dataset_no: number) =>
  tx.k
    .selectFrom("examples as e")
    .innerJoin("example_versions as v", (join) =>
      join
        .onRef("v.dataset_no", "=", "e.dataset_no")
        .onRef("v.example_index", "=", "e.example_index")
        .onRef("v.version", "=", "e.version"),
    )
    .where("e.dataset_no", "=", dataset_no);

/** The examples at these indexes in their newest versions, including deleted examples. */
export const examplesAt = (tx: Tx, dataset_no: number, example_indexes: number[]): Promise<VersionedExample[]> =>
  byIds(example_indexes, (batch) =>
    tx.all(
      newestVersions(tx, dataset_no)
        .selectAll("e")
        .select(["v.inputs", "v.outputs", "v.metadata", "v.splits", "v.created_at as version_at"])
        .where("e.example_index", "in", batch),
    ),
  ) as Promise<VersionedExample[]>;

/** Returns the given columns of all versions of the examples at these indexes, oldest version first. */
export const allVersionsAt = <Column extends keyof ExampleVersionRow>(
  tx: Tx,
  dataset_no: number,
  example_indexes: number[],
  columns: readonly Column[],
): Promise<Pick<ExampleVersionRow, Column>[]> =>
  byIds(example_indexes, (batch) =>
    tx.all(
      tx.k
        .selectFrom("example_versions")
        .select(columns)
        .where("dataset_no", "=", dataset_no)
        .where("example_index", "in", batch)
        .orderBy("example_index")
        .orderBy("version"),
    ),
  ) as Promise<unknown> as Promise<Pick<ExampleVersionRow, Column>[]>;

/** The indexes and ids of all examples of a dataset, including deleted examples. */
export const listExampleIds = (
  tx: Tx,
  dataset_no: number,
): Promise<Pick<ExampleRow, "example_index" | "example_id" | "deleted">[]> =>
  tx.all(
    tx.k
      .selectFrom("examples")
      .select(["example_index", "example_id", "deleted"])
      .where("dataset_no", "=", dataset_no)
      .orderBy("example_index"),
  );

/** Returns the indexes of the matching examples in no particular order. The filters may contain only conditions on metadata and text. */
export function searchExampleIndexes(
  tx: Tx,
  dataset_no: number,
  filters: RunFilter[],
): Promise<Pick<ExampleRow, "example_index">[]> {
  let query = newestVersions(tx, dataset_no).select("e.example_index");
  for (const filter of filters) query = query.where(compileExampleFilter(tx, filter));
  return tx.all(query);
}

/** The indexes of the deleted examples, in ascending order. */
export async function deletedExampleIndexes(tx: Tx, dataset_no: number): Promise<number[]> {
  const rows = await tx.all(
    tx.k
      .selectFrom("examples")
      .select("example_index")
      .where("dataset_no", "=", dataset_no)
      .where("deleted", "=", 1)
      .orderBy("example_index"),
  );
  return rows.map(({ example_index }) => example_index);
}
