import { type CompiledQuery, sql, type Updateable } from "kysely";
import type { Schema, Tx } from "../../platform/database/database.ts";
import { byIds, insertMany } from "../../platform/database/insert-many.ts";
import { prepared } from "../../platform/database/prepared.ts";
import type { FeedbackQuery } from "../contract/feedback/feedback.ts";
import type { FeedbackRow } from "./schema.ts";

/** Feedback with the ids of its experiment and run. */
export type FullFeedback = FeedbackRow & {
  /** Null for feedback on a session, and on an uploaded run, whose id is in `run_id`. */
  traced_run_id: string | null;
  /** Null while the run is unknown. */
  experiment_id: string | null;
  run_start_us: number | null;
  trace_id: string | null;
};

/** First key of the advisory locks for storing runs; the second key is derived from the workspace ID. */
const ARRIVAL_LOCKS = sql.lit(20_244);

/** Called before runs are stored; see {@link awaitArrivals}. */
export async function announceArrivals(tx: Tx, tenant_id: string): Promise<void> {
  if (tx.dialect.name === "sqlite") return;
  await tx.enqueue(sql`select pg_advisory_xact_lock_shared(${ARRIVAL_LOCKS}, hashtext(${tenant_id}))`.compile(tx.k));
}

/**
 * Waits for the transactions that store runs, and delays later ones: each run of a workspace is then visible, or its transaction sees the
 * feedback that this transaction stores.
 */
export async function awaitArrivals(tx: Tx, tenant_id: string): Promise<void> {
  if (tx.dialect.name === "sqlite") return;
  await tx.run(sql`select pg_advisory_xact_lock(${ARRIVAL_LOCKS}, hashtext(${tenant_id}))`.compile(tx.k));
}

export const insertFeedback = (tx: Tx, rows: FeedbackRow[]): Promise<void> => insertMany(tx, "feedback", rows);

const withIds = (tx: Tx) =>
  tx.k
    .selectFrom("feedback as f")
    .leftJoin("experiments as x", "x.experiment_no", "f.experiment_no")
    .leftJoin("experiment_runs as r", (join) =>
      join
        .onRef("r.experiment_no", "=", "f.experiment_no")
        .onRef("r.example_index", "=", "f.example_index")
        .onRef("r.repetition", "=", "f.repetition"),
    )
    .leftJoin("trace_runs as t", (join) =>
      join.onRef("t.tenant_id", "=", "f.tenant_id").onRef("t.run_id", "=", "f.run_id"),
    )
    .selectAll("f")
    .select(["x.experiment_id", "f.run_id as traced_run_id"])
    .select((q) => [
      q.fn.coalesce("f.run_id", "r.run_id").as("run_id"),
      q.fn.coalesce("t.start_us", "r.start_us").as("run_start_us"),
      q.fn.coalesce("t.trace_id", "r.run_id").as("trace_id"),
    ]);

const findQuery = prepared<Pick<FeedbackRow, "tenant_id" | "feedback_id">, FullFeedback>(
  (_, p, tx) =>
    withIds(tx)
      .where("f.tenant_id", "=", p("tenant_id"))
      .where("f.feedback_id", "=", p("feedback_id"))
      .compile() as unknown as CompiledQuery<FullFeedback>,
);

export const findFeedback = (tx: Tx, tenant_id: string, feedback_id: string): Promise<FullFeedback | undefined> =>
  tx.first(findQuery(tx, { tenant_id, feedback_id }));

/** Returns the feedback of any workspace that has one of the ids, because they are unique in the table. */
export const takenFeedbackIds = (tx: Tx, ids: string[]): Promise<FeedbackRow[]> =>
  byIds(ids, (batch) => tx.all(tx.k.selectFrom("feedback").selectAll().where("feedback_id", "in", batch)));

/** A page of feedback, newest first. */
export function listFeedback(tx: Tx, tenant_id: string, filter: FeedbackQuery): Promise<FullFeedback[]> {
  const { run, session, key, source, level, has_comment, has_score, min_created_at, max_created_at } = filter;
  let query = withIds(tx).where("f.tenant_id", "=", tenant_id);
  if (run) query = query.where("f.feedback_id", "in", feedbackOnRuns(tx, tenant_id, run));
  if (session) query = query.where("x.experiment_id", "in", session);
  if (key) query = query.where("f.key", "in", key);
  if (source) query = query.where(tx.dialect.jsonText(sql.ref("f.source"), "type"), "in", source);
  if (level) query = query.where(sql<boolean>`${isOnRun} = ${level === "run" ? 1 : 0}`);
  if (has_comment !== undefined) query = query.where("f.comment", has_comment ? "is not" : "is", null);
  if (has_score !== undefined) query = query.where("f.score", has_score ? "is not" : "is", null);
  if (min_created_at !== undefined) query = query.where("f.created_us", ">=", min_created_at);
  if (max_created_at !== undefined) query = query.where("f.created_us", "<=", max_created_at);
  if (filter.comparative_experiment_id)
    query = query.where("f.comparative_experiment_id", "=", filter.comparative_experiment_id);
  return tx.all(
    query.orderBy("f.created_us", "desc").orderBy("f.feedback_id").limit(filter.limit).offset(filter.offset),
  ) as Promise<FullFeedback[]>;
}

/** The ids of the feedback on these runs, whether traced or uploaded. */
const feedbackOnRuns = (tx: Tx, tenant_id: string, run_ids: string[]) =>
  tx.k
    .selectFrom("feedback")
    .select("feedback_id")
    .where("tenant_id", "=", tenant_id)
    .where("run_id", "in", run_ids)
    .unionAll(
      tx.k
        .selectFrom("experiment_runs as u")
        .innerJoin("feedback as g", (join) =>
          join
            .onRef("g.experiment_no", "=", "u.experiment_no")
            .onRef("g.example_index", "=", "u.example_index")
            .onRef("g.repetition", "=", "u.repetition"),
        )
        .select("g.feedback_id")
        .where("u.tenant_id", "=", tenant_id)
        .where("u.run_id", "in", run_ids),
    );

const isOnRun = sql`(case when f.example_index is null and f.run_id is null then 0 else 1 end)`;

/** The feedback on traced runs, oldest first. */
export const feedbackOfRuns = (tx: Tx, tenant_id: string, run_ids: string[]): Promise<FeedbackRow[]> =>
  byIds(run_ids, (batch) =>
    tx.all(
      tx.k
        .selectFrom("feedback")
        .selectAll()
        .where("tenant_id", "=", tenant_id)
        .where("run_id", "in", batch)
        .orderBy("created_us")
        .orderBy("feedback_id"),
    ),
  );

/** Without the columns that no record shows: parsing rows takes a fifth of the time of a page on Postgres. */
const SHOWN_COLUMNS = [
  "feedback_id",
  "experiment_no",
  "run_id",
  "example_index",
  "repetition",
  "key",
  "score",
  "value",
  "comment",
  "correction",
  "source",
  "extra",
  "feedback_group_id",
  "comparative_experiment_id",
  "is_error",
  "created_us",
  "modified_us",
] as const;

export type ShownFeedback = Pick<FeedbackRow, (typeof SHOWN_COLUMNS)[number]>;

/** The feedback on runs of these experiments on the examples at these indexes, oldest first. */
export const feedbackAt = (tx: Tx, experiments: number[], example_indexes: number[]): Promise<ShownFeedback[]> =>
  byIds(example_indexes, (batch) =>
    tx.all(
      tx.k
        .selectFrom("feedback")
        .select(SHOWN_COLUMNS)
        .where("experiment_no", "in", experiments)
        .where("example_index", "in", batch)
        .orderBy("created_us")
        .orderBy("feedback_id"),
    ),
  );

/** The columns from which statistics are computed. */
export type FeedbackStatsInput = Pick<
  FeedbackRow,
  "run_id" | "example_index" | "repetition" | "key" | "score" | "value" | "comment" | "source" | "is_error"
>;

/** The feedback of an experiment, for one key or for all keys. Feedback whose run has not arrived is not counted. */
export function feedbackStatsInputs(tx: Tx, experiment_no: number, key?: string): Promise<FeedbackStatsInput[]> {
  let query = tx.k
    .selectFrom("feedback as f")
    .select(["run_id", "example_index", "repetition", "key", "score", "value", "comment", "source", "is_error"])
    .where("experiment_no", "=", experiment_no)
    .where(({ exists, or, eb, selectFrom }) =>
      or([
        eb("f.run_id", "is", null),
        eb("f.example_index", "is not", null),
        exists(
          selectFrom("trace_runs as t")
            .select("t.run_no")
            .whereRef("t.tenant_id", "=", "f.tenant_id")
            .whereRef("t.run_id", "=", "f.run_id"),
        ),
      ]),
    );
  if (key !== undefined) query = query.where("key", "=", key);
  // Comments are shown in the order of their creation.
  return tx.all(query.orderBy("created_us").orderBy("feedback_id"));
}

export const updateFeedback = (tx: Tx, feedback_id: string, changes: Updateable<Schema["feedback"]>): Promise<number> =>
  tx.run(tx.k.updateTable("feedback").set(changes).where("feedback_id", "=", feedback_id));

type FeedbackTarget = Pick<FeedbackRow, "feedback_id" | "experiment_no" | "example_index" | "repetition">;

const moveQuery = prepared<FeedbackTarget, unknown>((k, p) =>
  k
    .updateTable("feedback")
    .set({ experiment_no: p("experiment_no"), example_index: p("example_index"), repetition: p("repetition") })
    .where("feedback_id", "=", p("feedback_id")),
);

/** Moves feedback to a session and, unless `example_index` and `repetition` are null, to a row of the session. */
export const moveFeedback = (tx: Tx, target: FeedbackTarget): Promise<number> => tx.run(moveQuery(tx, target));

/** Deletes feedback of a workspace by its id. */
export const deleteFeedbackOf = (tx: Tx, tenant_id: string, feedback_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("feedback").where("tenant_id", "=", tenant_id).where("feedback_id", "=", feedback_id));

export const deleteFeedback = (tx: Tx, feedback_id: string): Promise<number> =>
  tx.run(tx.k.deleteFrom("feedback").where("feedback_id", "=", feedback_id));
