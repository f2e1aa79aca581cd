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
} from "./run-filter.ts";

type Where = RawBuilder<SqlBool>;

const TRUE: Where = sql`1 = 1`;
const FALSE: Where = sql`1 = 0`;

/**
 * Compiles a filter to a condition on `r` (experiment_runs), `x` (experiments) and `e` (examples). Each condition is true or
 * false, never null, so that `not` inverts it. A test compares the SQL with an evaluator of {@link RunFilter}.
 */
export function compileFilter(tx: Tx, filter: RunFilter): Where {
  switch (filter.op) {
    case "and":
      return all(filter.of.map((part) => compileFilter(tx, part)));
    case "or":
      return any(filter.of.map((part) => compileFilter(tx, part)));
    case "not":
      return sql`not (${compileFilter(tx, filter.of)})`;
    case "has":
      return FALSE; // Uploaded runs have no tags.
    case "search":
      return all(filter.words.map((word) => runContains(tx, word)));
    case "feedback":
      return sql`exists (select 1 from feedback f where f.experiment_no = r.experiment_no and f.example_index = r.example_index
        and f.repetition = r.repetition and ${entryMatches(tx, filter.where)})`;
    case "metadata":
      return hasEntry(tx, sql`r.metadata`, filter.where);
    default:
      return condition(filter, RUN_OPERANDS[filter.field]);
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
    default:
      throw new Error(`Examples cannot be filtered by ${filter.op}.`);
  }
}

const hasEntry = (tx: Tx, metadata: RawBuilder<string | null>, where: readonly EntryCondition<EntryField>[]): Where =>
  sql`exists (select 1 from ${tx.dialect.jsonEntries(metadata)} m where ${entryMatches(tx, where)})`;

const all = (of: Where[]): Where => (of.length === 0 ? TRUE : sql`(${sql.join(of, sql` and `)})`);
const any = (of: Where[]): Where => (of.length === 0 ? FALSE : sql`(${sql.join(of, sql` or `)})`);

function runContains(tx: Tx, word: string): Where {
  const inputs = sql<string | null>`(select v.inputs from example_versions v
    where v.dataset_no = x.dataset_no and v.example_index = r.example_index and v.version = r.example_version)`;
  const outputs = sql<string | null>`(select o.outputs from experiment_outputs o
    where o.experiment_no = r.experiment_no and o.example_index = r.example_index and o.repetition = r.repetition)`;
  return anyContains(tx, word, [sql`r.name`, sql`r.error`, sql`r.metadata`, inputs, outputs]);
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
  equals: (value) => (value === null ? sql`${of} is null` : sql`(${of} = ${value}) is true`),
  isNull: sql`${of} is null`,
  number: of as Expression<number | null>,
});

/** A field with the same value in every run. */
const constant = (of: Scalar): Operand => ({
  equals: (value) => (value === of ? TRUE : FALSE),
  isNull: of === null ? TRUE : FALSE,
  number: sql`${typeof of === "number" ? of : null}`,
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

const RUN_OPERANDS: Record<RunField, Operand> = {
  id: column(sql`r.run_id`),
  name: column(sql`r.name`),
  status: column(sql`case when r.error is null then 'success' else 'error' end`),
  error: column(sql`r.error`),
  latency: column(sql`((r.end_us - r.start_us) / 1000000.0)`),
  start_time: column(sql`r.start_us`),
  end_time: column(sql`r.end_us`),
  reference_example: column(sql`e.example_id`),
  run_type: constant("chain"),
  is_root: constant(true),
  tags: constant(null),
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
      return typeof of.value === "number" ? sql`(${number} ${COMPARATORS[of.op]} ${of.value}) is true` : FALSE;
  }
}
