/**
 * The tables of datasets and experiments, as both databases hold them. `_us` are microseconds since the epoch (clients
 * measure that finely, and 2^53 of them reach the year 2255), `_at` milliseconds; JSON is text; flags are 0 or 1.
 *
 * Children name their parents by number (`dataset_no`, `experiment_no`), not by id: ids of datasets are the caller's, so
 * two workspaces may have the same, and 8 bytes instead of 36 in each of 100,000 rows keep the indexes small.
 */
declare module "../../platform/database/schema.ts" {
  interface Schema {
    datasets: DatasetTable;
    examples: ExampleRow;
    example_versions: ExampleVersionRow;
    experiments: ExperimentTable;
    experiment_runs: ExperimentRunRow;
    experiment_outputs: ExperimentOutputsRow;
    feedback: FeedbackRow;
    score_vectors: ScoreVectorRow;
    feedback_configs: FeedbackConfigRow;
    comparative_experiments: ComparativeExperimentRow;
  }
}

type WithSequence<Row, Key extends keyof Row> = Omit<Row, Key> & { [K in Key]: import("kysely").Generated<Row[K]> };

type DatasetTable = WithSequence<DatasetRow, "dataset_no">;
type ExperimentTable = WithSequence<ExperimentRow, "experiment_no">;

export interface DatasetRow {
  dataset_no: number;
  tenant_id: string;
  dataset_id: string;
  name: string;
  description: string | null;
  data_type: string;
  /** 1: made by an upload of results; only such a dataset takes further uploads. */
  externally_managed: number;
  inputs_schema: string | null;
  outputs_schema: string | null;
  transformations: string | null;
  metadata: string | null;
  baseline_experiment_id: string | null;
  share_token: string | null;
  /** 1: whoever has the token sees the experiments, too. */
  shares_experiments: number;
  example_count: number;
  /** The place of the next example. */
  next_ord: number;
  /** The test_run_number of the next experiment. */
  next_test_run: number;
  created_at: number;
  modified_at: number;
}

/** An example's place and identity. What it says is in its newest version. */
export interface ExampleRow {
  dataset_no: number;
  /** 0, 1, 2 ... in the dataset, never given out again: the index of the example in every score vector. */
  ord: number;
  tenant_id: string;
  example_id: string;
  /** The id by which uploads name it. */
  row_id: string;
  version: number;
  /** Of inputs and outputs of the newest version, so that an upload sees what has changed without reading them. */
  digest: string;
  source_run_id: string | null;
  deleted: number;
  created_at: number;
  modified_at: number;
}

/** What an example said from a moment on. */
export interface ExampleVersionRow {
  dataset_no: number;
  ord: number;
  /** 1, 2, 3 ... of the example. */
  version: number;
  inputs: string;
  outputs: string | null;
  metadata: string | null;
  /** JSON list of the splits it is in. */
  splits: string;
  /** 1: from this moment on it is gone. */
  deleted: number;
  created_at: number;
}

export interface ExperimentRow {
  experiment_no: number;
  experiment_id: string;
  tenant_id: string;
  /** Null for a project that belongs to no dataset. */
  dataset_no: number | null;
  name: string;
  description: string | null;
  start_us: number;
  end_us: number | null;
  extra: string | null;
  trace_tier: string | null;
  default_dataset_id: string | null;
  test_run_number: number | null;
  /** An ExperimentStats as JSON, renewed by each change of its runs or feedback. */
  stats: string;
  /** Plus one at each change of runs or feedback: what was computed of the experiment is kept under it. */
  stats_version: number;
  created_at: number;
}

export interface ExperimentRunRow {
  experiment_no: number;
  /** The example's place in its dataset. */
  ord: number;
  /** 0, 1, 2 ... of the example within the experiment. */
  repetition: number;
  run_id: string;
  tenant_id: string;
  /** The version of the example whose inputs the run had. */
  example_version: number;
  name: string;
  start_us: number;
  end_us: number;
  error: string | null;
  metadata: string | null;
  /** The beginnings of inputs and outputs, for lists. */
  inputs_preview: string;
  outputs_preview: string | null;
}

/** Apart from the runs, whose rows are read by the ten thousand. */
export interface ExperimentOutputsRow {
  experiment_no: number;
  ord: number;
  repetition: number;
  /** JSON, never null: a run without outputs has no row. */
  outputs: string;
}

export interface FeedbackRow {
  feedback_id: string;
  tenant_id: string;
  experiment_no: number;
  /** The run; both null for feedback on the experiment as a whole. */
  ord: number | null;
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
  /** 1: the evaluator failed. */
  is_error: number;
  created_us: number;
  modified_us: number;
}

/**
 * One number an example, in the order of their places, as little-endian 64-bit floats; NaN where there is none. In 32 bits
 * 0.1 would be 0.10000000149, and comparisons would show other means than the statistics.
 */
export interface ScoreVectorRow {
  experiment_no: number;
  /** `score` of a feedback key, `latency` in seconds, `error` as the share of runs that failed. */
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
