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

const YES: Where = sql`1 = 1`;
const NO: Where = sql`1 = 0`;

/**
 * A filter of runs as a condition on `r` (experiment_runs), `x` (experiments) and `e` (examples). Each condition is true or
 * false, never unknown, so that `not` turns it around: what it means is said at `matches`, and a test compares the two.
 */
export function compileFilter(tx: Tx, filter: RunFilter): Where {
  switch (filter.op) {
    case "and":
      return all(filter.of.map((one) => compileFilter(tx, one)));
    case "or":
      return any(filter.of.map((one) => compileFilter(tx, one)));
    case "not":
      return sql`not (${compileFilter(tx, filter.of)})`;
    case "has":
      return NO; // Uploaded runs have no tags.
    case "search":
      return all(filter.words.map((word) => foundInRun(tx, word)));
    case "feedback":
      return sql`exists (select 1 from feedback f where f.experiment_no = r.experiment_no and f.ord = r.ord
        and f.repetition = r.repetition and ${entry(tx, filter.where)})`;
    case "metadata":
      return hasEntry(tx, sql`r.metadata`, filter.where);
    default:
      return condition(filter, run);
  }
}

/** The same on `v` (example_versions), of a filter that is about metadata and text alone. */
export function compileExampleFilter(tx: Tx, filter: RunFilter): Where {
  switch (filter.op) {
    case "and":
      return all(filter.of.map((one) => compileExampleFilter(tx, one)));
    case "or":
      return any(filter.of.map((one) => compileExampleFilter(tx, one)));
    case "not":
      return sql`not (${compileExampleFilter(tx, filter.of)})`;
    case "search":
      return all(filter.words.map((word) => found(tx, word, [sql`v.inputs`, sql`v.outputs`, sql`v.metadata`])));
    case "metadata":
      return hasEntry(tx, sql`v.metadata`, filter.where);
    default:
      throw new Error(`An example has no ${filter.op} to filter by.`);
  }
}

const hasEntry = (tx: Tx, metadata: RawBuilder<string | null>, where: readonly EntryCondition<EntryField>[]): Where =>
  sql`exists (select 1 from ${tx.dialect.jsonEntries(metadata)} m where ${entry(tx, where)})`;

const all = (of: Where[]): Where => (of.length === 0 ? YES : sql`(${sql.join(of, sql` and `)})`);
const any = (of: Where[]): Where => (of.length === 0 ? NO : sql`(${sql.join(of, sql` or `)})`);

/** Whether a word occurs in the run's name, error, metadata, inputs or outputs. */
function foundInRun(tx: Tx, word: string): Where {
  const inputs = sql<string | null>`(select v.inputs from example_versions v
    where v.dataset_no = x.dataset_no and v.ord = r.ord and v.version = r.example_version)`;
  const outputs = sql<string | null>`(select o.outputs from experiment_outputs o
    where o.experiment_no = r.experiment_no and o.ord = r.ord and o.repetition = r.repetition)`;
  return found(tx, word, [sql`r.name`, sql`r.error`, sql`r.metadata`, inputs, outputs]);
}

/** Whether a word, or a part of a text, occurs in any of the texts. */
export const found = (tx: Tx, word: string, texts: Expression<string | null>[]): Where =>
  any(
    texts.flatMap((text) =>
      spellingsOf(word).map((spelling) => sql<SqlBool>`(${tx.dialect.containsText(text, spelling)}) is true`),
    ),
  );

/** Says how to compare what a field holds. */
interface Operand {
  equals(value: Scalar): Where;
  isNull: Where;
  /** The value where it is a number, else null. */
  number: Expression<number | null>;
}

const column = (of: RawBuilder<unknown>): Operand => ({
  equals: (value) => (value === null ? sql`${of} is null` : sql`(${of} = ${value}) is true`),
  isNull: sql`${of} is null`,
  number: of as Expression<number | null>,
});

/** The same for every run: decided here. */
const constant = (of: Scalar): Operand => ({
  equals: (value) => (value === of ? YES : NO),
  isNull: of === null ? YES : NO,
  number: sql`${typeof of === "number" ? of : null}`,
});

/** A scalar of a JSON text: `m.kind` says which, `m.text` holds it. */
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

const run = (field: RunField): Operand => RUN[field];

const RUN: Record<RunField, Operand> = {
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

function entry(tx: Tx, where: readonly EntryCondition<EntryField>[]): Where {
  return all(
    where.map((one) =>
      one.op === "or" ? any(one.of.map((each) => entryCondition(tx, each))) : entryCondition(tx, one),
    ),
  );
}

function entryCondition(tx: Tx, of: Condition<EntryField>): Where {
  switch (of.field) {
    case "feedback_key":
      return condition(of, () => column(sql`f.key`));
    case "feedback_score":
      return condition(of, () => column(sql`f.score`));
    case "feedback_value": {
      // Null where there is no value at all.
      const entries = tx.dialect.jsonEntries(sql`('{"value":' || coalesce(f.value, 'null') || '}')`);
      return sql`exists (select 1 from ${entries} m where ${condition(of, () => scalar)})`;
    }
    case "metadata_key":
      return condition(of, () => column(sql`m.key`));
    case "metadata_value":
      return condition(of, () => scalar);
  }
}

const COMPARATORS = { gt: sql`>`, gte: sql`>=`, lt: sql`<`, lte: sql`<=` };

function condition<Field extends string>(of: Condition<Field>, operand: (field: Field) => Operand): Where {
  const { equals, isNull, number } = operand(of.field);
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
      return typeof of.value === "number" ? sql`(${number} ${COMPARATORS[of.op]} ${of.value}) is true` : NO;
  }
}
