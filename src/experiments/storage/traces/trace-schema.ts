import type { WithSequence } from "../schema.ts";

/** The tables of traces. Units are those of schema.ts. */
declare module "../../../platform/database/database.ts" {
  interface Schema {
    trace_runs: WithSequence<TraceRunRow, "run_no">;
    trace_payloads: TracePayloadRow;
    trace_attachments: TraceAttachmentRow;
    run_shares: RunShareRow;
    model_prices: ModelPriceRow;
    feedback_tokens: FeedbackTokenRow;
  }
}

/** The tokens and costs of a run and all runs below it, and the time of the first token. Null if none of the runs has a value. */
export interface TreeUsage {
  tree_prompt_tokens: number | null;
  tree_completion_tokens: number | null;
  tree_total_tokens: number | null;
  tree_prompt_cost: number | null;
  tree_completion_cost: number | null;
  tree_total_cost: number | null;
  tree_first_token_us: number | null;
}

/** The tokens and costs (USD) of a run itself. */
export interface OwnUsage {
  prompt_tokens: number | null;
  completion_tokens: number | null;
  total_tokens: number | null;
  prompt_cost: number | null;
  completion_cost: number | null;
  total_cost: number | null;
  first_token_us: number | null;
}

/** A run of a trace: a span. The root and all runs below it have the same `trace_id`, the id of the root. */
export interface TraceRunRow extends OwnUsage, TreeUsage {
  run_no: number;
  tenant_id: string;
  run_id: string;
  /** The experiment to which the run belongs; the API calls it a session. */
  experiment_no: number;
  trace_id: string;
  /** The parent may be missing, for example because it has not arrived yet. */
  parent_run_id: string | null;
  /** `{start}Z{id}` of all runs from the root to this one, joined by dots: its text order is the order of the tree. */
  dotted_order: string;
  is_root: number;
  /** 1 while the position in the tree is provisional, because the parent is unknown or the client sent no position. */
  is_provisional: number;
  /** Null until a request contains the name. */
  name: string | null;
  run_type: string;
  start_us: number;
  /** Null for a pending run. */
  end_us: number | null;
  /** The error, truncated. */
  error: string | null;
  /** JSON list. */
  tags: string | null;
  /** JSON object: `extra.metadata`. */
  metadata: string | null;
  thread_id: string | null;
  reference_example_id: string | null;
  inputs_preview: string | null;
  outputs_preview: string | null;
  /** JSON object with the details of the run's tokens and costs; null without details. */
  usage_details: string | null;
  /** Bits defined in merge-run.ts: the fields that a patch has set, and whether the run was posted or names a session or a thread. */
  merge_state: number;
}

/** The large fields of a run, as JSON except for the error. `extra` excludes the metadata. */
export interface TracePayloadRow {
  run_no: number;
  inputs: string | null;
  outputs: string | null;
  error: string | null;
  events: string | null;
  extra: string | null;
  serialized: string | null;
}

/** Public read access to the trace of a root, or to a run and all runs below it. */
export interface RunShareRow {
  share_token: string;
  tenant_id: string;
  run_id: string;
  created_at: number;
}

export interface FeedbackTokenRow {
  /** A random UUID that grants the right to create feedback. */
  token: string;
  tenant_id: string;
  run_id: string;
  /** Each use of the token creates or replaces the feedback with this id. If the id is null, each use creates new feedback. */
  feedback_id: string | null;
  feedback_key: string;
  expires_at: number;
  created_at: number;
}

export interface ModelPriceRow {
  price_id: string;
  tenant_id: string;
  entry: string;
  /** Digest of name, pattern, path, provider and start time, which are unique together. */
  identity: string;
  created_at: number;
}

export interface TraceAttachmentRow {
  run_no: number;
  name: string;
  mime_type: string;
  /** A random secret that signs the links to the attachment: see attachment-links.ts. */
  token: string;
  data: Uint8Array;
}
