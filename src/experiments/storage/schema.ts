/**
 * The tables of datasets and experiments in both databases. `_us` is in microseconds since the epoch (the precision of the
 * clients; 2^53 microseconds reach the year 2255), `_at` in milliseconds. JSON is stored as text, and flags as 0 or 1.
 *
 * Foreign keys are numbers (`dataset_no`, `experiment_no`), not ids: callers choose the ids of datasets, so two workspaces may
 * use the same id, and 8 bytes instead of 36 in each of 100,000 rows keep the indexes small.
 */
declare module "../../platform/database/database.ts" {
  interface Schema {
    datasets: DatasetTable;
    examples: ExampleRow;
    example_versions: ExampleVersionRow;
    example_attachments: ExampleAttachmentRow;
    dataset_tags: DatasetTagRow;
    experiments: ExperimentTable;
    experiment_runs: ExperimentRunRow;
    experiment_outputs: ExperimentOutputsRow;
    feedback: FeedbackRow;
    score_vectors: ScoreVectorRow;
    feedback_configs: FeedbackConfigRow;
    comparative_experiments: ComparativeExperimentRow;
  }
}

export type WithSequence<Row, Key extends keyof Row> = Omit<Row, Key> & {
  [K in Key]: import("kysely").Generated<Row[K]>;
};

type DatasetTable = WithSequence<DatasetRow, "dataset_no">;
type ExperimentTable = WithSequence<ExperimentRow, "experiment_no">;

export interface DatasetRow {
  dataset_no: number;
  tenant_id: string;
  dataset_id: string;
  name: string;
  description: string | null;
  data_type: string;
  /** 1 if an upload created the dataset. Only such datasets accept uploads. */
  externally_managed: number;
  inputs_schema: string | null;
  outputs_schema: string | null;
  transformations: string | null;
  metadata: string | null;
  baseline_experiment_id: string | null;
  share_token: string | null;
  /** 1 if the share token also grants access to the experiments. */
  shares_experiments: number;
  example_count: number;
  /** The index of the next example. */
  next_example_index: number;
  /** The `test_run_number` of the next experiment. */
  next_test_run: number;
  created_at: number;
  modified_at: number;
}

/** The index and the ids of an example. Its content is in its newest version. */
export interface ExampleRow {
  dataset_no: number;
  /** The position in the dataset, starting at 0. It is never reused. Score vectors are indexed by it. */
  example_index: number;
  tenant_id: string;
  example_id: string;
  /** The id of the example in uploads. */
  row_id: string;
  version: number;
  /** The digest of the inputs and outputs of the newest version: uploads detect changes without reading these. */
  digest: string;
  source_run_id: string | null;
  deleted: number;
  created_at: number;
  modified_at: number;
}

/** The content of an example from `created_at` until its next version. */
export interface ExampleVersionRow {
  dataset_no: number;
  example_index: number;
  /** From 1, per example. */
  version: number;
  inputs: string;
  outputs: string | null;
  metadata: string | null;
  /** JSON list of the splits of the example. An empty list means the split `base`. */
  splits: string;
  /** 1 if the example is deleted in this version. */
  deleted: number;
  created_at: number;
}

/** An attachment of the versions of an example from `from_version` (inclusive) to `until_version` (exclusive). */
export interface ExampleAttachmentRow {
  dataset_no: number;
  example_index: number;
  name: string;
  from_version: number;
  /** Null while the newest version has the attachment. */
  until_version: number | null;
  mime_type: string;
  /** 128 random bits that grant access to the attachment. */
  token: string;
  data: Uint8Array;
}

/** A name for the state of a dataset at a time. */
export interface DatasetTagRow {
  dataset_no: number;
  tag: string;
  /** A time at which examples changed. */
  version_at: number;
}

export interface ExperimentRow {
  experiment_no: number;
  experiment_id: string;
  tenant_id: string;
  /** Null for an experiment without a dataset. */
  dataset_no: number | null;
  name: string;
  description: string | null;
  start_us: number;
  end_us: number | null;
  extra: string | null;
  trace_tier: string | null;
  default_dataset_id: string | null;
  test_run_number: number | null;
  /** ExperimentStats as JSON. Outdated while `stats_dirty` is 1. */
  stats: string;
  /** Incremented with each change of runs or feedback; part of the key of cached comparisons. */
  stats_version: number;
  /** 1 if traces or their feedback changed after `stats` was computed. */
  stats_dirty: number;
  created_at: number;
}

export interface ExperimentRunRow {
  experiment_no: number;
  /** The index of the example in its dataset. */
  example_index: number;
  /** From 0, per example and experiment. */
  repetition: number;
  run_id: string;
  tenant_id: string;
  /** The version of the example whose inputs the run received. */
  example_version: number;
  name: string;
  start_us: number;
  /** Null for a pending run of a trace. */
  end_us: number | null;
  error: string | null;
  metadata: string | null;
  /** The beginnings of inputs and outputs for lists. */
  inputs_preview: string;
  outputs_preview: string | null;
  /** 1 if the row repeats the root of a trace, 0 if it was uploaded. */
  is_traced: number;
}

/** Outputs are in a separate table, so that queries over tens of thousands of runs do not read them. */
export interface ExperimentOutputsRow {
  experiment_no: number;
  example_index: number;
  repetition: number;
  /** JSON. A run without outputs has no row. */
  outputs: string;
}

export interface FeedbackRow {
  feedback_id: string;
  tenant_id: string;
  /** 0 while the session is unknown: clients may send feedback before its run, and without a session. */
  experiment_no: number;
  /** The run of a trace; null for feedback on an uploaded run or on the experiment. */
  run_id: string | null;
  /** The row of the experiment; both columns are null for feedback on the experiment, or on a run that is not a row. */
  example_index: number | null;
  repetition: number | null;
  key: string;
  score: number | null;
  /** JSON. */
  value: string | null;
  comment: string | null;
  /** JSON. */
  correction: string | null;
  /** JSON `{type, metadata}`. */
  source: string | null;
  extra: string | null;
  feedback_group_id: string | null;
  comparative_experiment_id: string | null;
  /** 1 if the evaluator failed. */
  is_error: number;
  /** 1 if the feedback keeps its trace from expiring. */
  extends_retention: number;
  created_us: number;
  modified_us: number;
}

/**
 * One number per example, by example index, as little-endian 64-bit floats; NaN for a missing value. As 32-bit floats, 0.1 would
 * become 0.10000000149, and the means in comparisons would differ from those in the statistics of the experiments.
 */
export interface ScoreVectorRow {
  experiment_no: number;
  /** `score` of a feedback key, `latency` in seconds, `error` as the fraction of runs that failed. */
  kind: "score" | "latency" | "error";
  /** The feedback key; empty for the other kinds. */
  key: string;
  data: Uint8Array;
}

export interface FeedbackConfigRow {
  tenant_id: string;
  feedback_key: string;
  config: string;
  is_lower_score_better: number | null;
  modified_at: number;
}

export interface ComparativeExperimentRow {
  comparative_experiment_id: string;
  tenant_id: string;
  dataset_no: number;
  name: string | null;
  description: string | null;
  extra: string | null;
  /** JSON list. */
  experiment_ids: string;
  created_at: number;
  modified_at: number;
}
