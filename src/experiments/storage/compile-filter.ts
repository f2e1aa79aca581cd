import { type Expression, type RawBuilder, type SqlBool, sql } from "kysely";
import type { Tx } from "../../platform/database/database.ts";
import {
  type Condition,
  type EntryCondition,
  type EntryField,
  type RunField,
  type RunFilter,
  type Scalar,
  spellingsOf,
  THREAD_KEYS,
} from "./run-filter.ts";

type Where = RawBuilder<SqlBool>;

const TRUE: Where = sql`1 = 1`;
const FALSE: Where = sql`1 = 0`;

/**
 * The SQL to which conditions on a run are compiled. `r` is the run and `e` its example. For an uploaded run, `x` is
 * the experiment.
 */
export interface RunSource {
  operands: Record<RunField, Operand>;
  /** The texts that `search` reads. */
  texts: RawBuilder<string | null>[];
  /** Whether the feedback `f` belongs to the run. */
  feedback: Where;
  hasTag(value: string): Where;
  inThread(tx: Tx, ids: string[]): Where;
}

/**
 * Compiles a filter to a condition on a run. Each condition is true or false, never null, so that `not` inverts it. A test compares
 * the SQL with an evaluator of {@link RunFilter}.
 */
export function compileFilter(tx: Tx, filter: RunFilter, source: RunSource): Where {
  const part = (of: RunFilter) => compileFilter(tx, of, source);
  switch (filter.op) {
    case "and":
      return all(filter.of.map(part));
    case "or":
      return any(filter.of.map(part));
    case "not":
      return sql`not (${part(filter.of)})`;
    case "has":
      return source.hasTag(filter.value);
    case "thread":
      return source.inThread(tx, filter.ids);
    case "search":
      return all(filter.words.map((word) => anyContains(tx, word, source.texts)));
    case "feedback":
      return sql`exists (select 1 from feedback f where ${source.feedback} and ${entryMatches(tx, filter.where)})`;
    case "metadata":
      return hasEntry(tx, sql`r.metadata`, filter.where);
    default:
      return condition(filter, source.operands[filter.field]);
  }
}

/** Compiles a filter on metadata and text to a condition on `v` (example_versions). */
export function compileExampleFilter(tx: Tx, filter: RunFilter): Where {
  switch (filter.op) {
    case "and":
      return all(filter.of.map((part) => compileExampleFilter(tx, part)));
    case "or":
      return any(filter.of.map((part) => compileExampleFilter(tx, part)));
    case "not":
      return sql`not (${compileExampleFilter(tx, filter.of)})`;
    case "search":
      return all(filter.words.map((word) => anyContains(tx, word, [sql`v.inputs`, sql`v.outputs`, sql`v.metadata`])));
    case "metadata":
      return hasEntry(tx, sql`v.metadata`, filter.where);
    case "thread":
      return hasEntry(tx, sql`v.metadata`, threadEntry(filter.ids));
    default:
      throw new Error(`Examples cannot be filtered by ${filter.op}.`);
  }
}

const hasEntry = (tx: Tx, metadata: RawBuilder<string | null>, where: readonly EntryCondition<EntryField>[]): Where =>
  sql`exists (select 1 from ${tx.dialect.jsonEntries(metadata)} m where ${entryMatches(tx, where)})`;

const threadEntry = (values: string[]): EntryCondition<EntryField>[] => [
  { op: "in", field: "metadata_key", values: THREAD_KEYS },
  { op: "in", field: "metadata_value", values },
];

const all = (of: Where[]): Where => (of.length === 0 ? TRUE : chain(of, sql` and `));
const any = (of: Where[]): Where => (of.length === 0 ? FALSE : chain(of, sql` or `));

/** A chain of n operators is n levels deep for SQLite, which refuses 1,000. In halves it is log2(n) levels deep. */
function chain(of: Where[], operator: RawBuilder<unknown>): Where {
  if (of.length <= 8) return sql`(${sql.join(of, operator)})`;
  const middle = of.length >> 1;
  return sql`(${chain(of.slice(0, middle), operator)}${operator}${chain(of.slice(middle), operator)})`;
}

export const anyContains = (tx: Tx, word: string, texts: Expression<string | null>[]): Where =>
  any(
    texts.flatMap((text) =>
      spellingsOf(word).map((spelling) => sql<SqlBool>`(${tx.dialect.containsText(text, spelling)}) is true`),
    ),
  );

interface Operand {
  equals(value: Scalar): Where;
  isNull: Where;
  /** The value if it is a number, else null. */
  number: Expression<number | null>;
}

const column = (of: RawBuilder<unknown>): Operand => ({
  // `(a = b) is true` would not use an index.
  equals: (value) => (value === null ? sql`${of} is null` : sql`(${of} is not null and ${of} = ${value})`),
  isNull: sql`${of} is null`,
  number: of as Expression<number | null>,
});

/** A field with the same value in every run. */
const constant = (of: Scalar): Operand => ({
  equals: (value) => (value === of ? TRUE : FALSE),
  isNull: of === null ? TRUE : FALSE,
  number: sql`cast(${sql.lit(typeof of === "number" ? of : null)} as double precision)`,
});

/** A JSON scalar: `m.kind` is `text`, `number`, `true`, `false` or `null`, and `m.text` is its value. */
const scalar: Operand = {
  equals(value) {
    if (value === null) return sql`m.kind = 'null'`;
    if (typeof value === "boolean") return sql`m.kind = ${String(value)}`;
    if (typeof value === "number") return sql`(${scalar.number} = ${value}) is true`;
    return sql`(m.kind = 'text' and m.text = ${value})`;
  },
  isNull: sql`m.kind = 'null'`,
  number: sql`case when m.kind = 'number' then cast(m.text as double precision) end`,
};

/** The fields that uploaded and traced runs store in the same columns. */
const SHARED = {
  id: column(sql`r.run_id`),
  name: column(sql`r.name`),
  error: column(sql`r.error`),
  latency: column(sql`((r.end_us - r.start_us) / 1000000.0)`),
  start_time: column(sql`r.start_us`),
  end_time: column(sql`r.end_us`),
  reference_example: column(sql`e.example_id`),
};

/** `r` is experiment_runs. */
export const UPLOADED: RunSource = {
  operands: {
    ...SHARED,
    status: column(sql`case when r.error is null then 'success' else 'error' end`),
    run_type: constant("chain"),
    is_root: constant(true),
    tags: constant(null),
    trace_id: SHARED.id,
    parent_run_id: constant(null),
    first_token_time: constant(null),
    total_tokens: constant(0),
    prompt_tokens: constant(0),
    completion_tokens: constant(0),
    total_cost: constant(null),
  },
  texts: [
    sql`r.name`,
    sql`r.error`,
    sql`r.metadata`,
    sql`(select v.inputs from example_versions v
      where v.dataset_no = x.dataset_no and v.example_index = r.example_index and v.version = r.example_version)`,
    sql`(select o.outputs from experiment_outputs o
      where o.experiment_no = r.experiment_no and o.example_index = r.example_index and o.repetition = r.repetition)`,
  ],
  feedback: sql`f.experiment_no = r.experiment_no and f.example_index = r.example_index and f.repetition = r.repetition`,
  hasTag: () => FALSE,
  inThread: (tx, ids) => hasEntry(tx, sql`r.metadata`, threadEntry(ids)),
};

/** The condition for `error` must equal the condition of the partial index of failed root runs. */
const STATUS = new Map<unknown, Where>([
  ["error", sql`r.error is not null`],
  ["pending", sql`(r.error is null and r.end_us is null)`],
  ["success", sql`(r.error is null and r.end_us is not null)`],
]);

/** Without the cast, Postgres would use the type of the column, bigint, for a compared value such as 6.5. */
const tokens = (of: RawBuilder<number | null>) => column(sql`cast(coalesce(${of}, 0) as double precision)`);

/** `r` is trace_runs. */
export const TRACED: RunSource = {
  operands: {
    ...SHARED,
    status: { equals: (value) => STATUS.get(value) ?? FALSE, isNull: FALSE, number: sql`null` },
    run_type: column(sql`r.run_type`),
    is_root: {
      equals: (value) => (value === true ? sql`r.is_root = 1` : value === false ? sql`r.is_root = 0` : FALSE),
      isNull: FALSE,
      number: sql`null`,
    },
    tags: { ...column(sql`r.tags`), isNull: sql`coalesce(r.tags, '[]') = '[]'` },
    trace_id: column(sql`r.trace_id`),
    parent_run_id: column(sql`r.parent_run_id`),
    first_token_time: column(sql`r.tree_first_token_us`),
    total_tokens: tokens(sql`r.tree_total_tokens`),
    prompt_tokens: tokens(sql`r.tree_prompt_tokens`),
    completion_tokens: tokens(sql`r.tree_completion_tokens`),
    total_cost: column(sql`r.tree_total_cost`),
  },
  texts: [
    sql`r.name`,
    sql`r.error`,
    sql`r.metadata`,
    sql`(select p.inputs from trace_payloads p where p.run_no = r.run_no)`,
    sql`(select p.outputs from trace_payloads p where p.run_no = r.run_no)`,
  ],
  feedback: sql`f.tenant_id = r.tenant_id and f.run_id = r.run_id`,
  hasTag: (value) => sql`json_contains(coalesce(r.tags, '[]'), ${JSON.stringify([value])})`,
  inThread: (_tx, ids) =>
    ids.length === 0 ? FALSE : sql`(r.thread_id is not null and r.thread_id in (${sql.join(ids)}))`,
};

function entryMatches(tx: Tx, where: readonly EntryCondition<EntryField>[]): Where {
  return all(
    where.map((part) =>
      part.op === "or" ? any(part.of.map((each) => entryCondition(tx, each))) : entryCondition(tx, part),
    ),
  );
}

function entryCondition(tx: Tx, of: Condition<EntryField>): Where {
  switch (of.field) {
    case "feedback_key":
      return condition(of, column(sql`f.key`));
    case "feedback_score":
      return condition(of, column(sql`f.score`));
    case "feedback_value": {
      // A missing value is null.
      const entries = tx.dialect.jsonEntries(sql`('{"value":' || coalesce(f.value, 'null') || '}')`);
      return sql`exists (select 1 from ${entries} m where ${condition(of, scalar)})`;
    }
    case "metadata_key":
      return condition(of, column(sql`m.key`));
    case "metadata_value":
      return condition(of, scalar);
  }
}

const COMPARATORS = { gt: sql`>`, gte: sql`>=`, lt: sql`<`, lte: sql`<=` };

function condition(of: Condition<string>, { equals, isNull, number }: Operand): Where {
  switch (of.op) {
    case "exists":
      return sql`not (${isNull})`;
    case "in":
      return any(of.values.map(equals));
    case "eq":
      return equals(of.value);
    case "neq":
      return of.value === null ? sql`not (${isNull})` : sql`not (${isNull} or ${equals(of.value)})`;
    default:
      return typeof of.value === "number"
        ? sql`(${number} is not null and ${number} ${COMPARATORS[of.op]} ${of.value})`
        : FALSE;
  }
}
