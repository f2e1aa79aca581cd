import { cutPreview } from "../../platform/contract/preview.ts";
import { isObject, type JsonObject } from "../../platform/lib/json/json.ts";
import { cutToIndex } from "../contract/fields.ts";
import { THREAD_KEYS } from "../storage/run-filter.ts";
import type { TracePayloadRow, TraceRunRow } from "../storage/traces/trace-schema.ts";
import { MAX_ERROR_CHARS, type TraceNode } from "../storage/traces/traces.ts";
import type { RunOperation } from "./operation.ts";
import { rootPosition, segmentOf, type TreePosition } from "./tree-position.ts";
import { modelOf, type PriceMap, type Prices } from "./usage/prices.ts";
import { firstTokenOf, ownUsage, trimEvents } from "./usage/usage.ts";

/**
 * Fields for which `merge_state` records that a patch has set them: a post does not replace these values. The bit positions are stored, so
 * the order must not change.
 */
const MERGED = [
  "name",
  "run_type",
  "start_time",
  "end_time",
  "inputs",
  "outputs",
  "error",
  "events",
  "extra",
  "tags",
  "serialized",
  "reference_example_id",
] as const;
type MergedField = (typeof MERGED)[number];

/** Further bits of `merge_state`. */
const HAS_POST = 1 << 20;
const HAS_SESSION = 1 << 21;
const HAS_THREAD = 1 << 22;

type Payload = Omit<TracePayloadRow, "run_no">;
export type Run = Omit<TraceRunRow, "run_no">;

/** A run while a request changes it. */
export interface RunDraft {
  /** Undefined for a new run. */
  run_no: number | undefined;
  run: Run;
  payload: Payload;
  /** Whether the run had ended before the request. */
  was_ended: boolean;
  /** Whether the request has outputs, `extra`, a run type or a new start time: thread, tokens and costs are computed from them. */
  changes_usage: boolean;
}

/**
 * LangChain sends `serialized`, the constructor arguments, for every run. It is stored only for models and prompts, where it is
 * informative.
 */
const SERIALIZED_TYPES = new Set(["llm", "prompt"]);
const DEFAULT_TYPE = "chain";

const NO_USAGE = {
  prompt_tokens: null,
  completion_tokens: null,
  total_tokens: null,
  prompt_cost: null,
  completion_cost: null,
  total_cost: null,
  first_token_us: null,
  tree_prompt_tokens: null,
  tree_completion_tokens: null,
  tree_total_tokens: null,
  tree_prompt_cost: null,
  tree_completion_cost: null,
  tree_total_cost: null,
  tree_first_token_us: null,
};

/** A run of which only the id and a start time are known. */
export const newDraft = (tenant_id: string, run_id: string, start_us: number): RunDraft => ({
  run_no: undefined,
  changes_usage: false,
  was_ended: false,
  run: {
    tenant_id,
    run_id,
    experiment_no: 0,
    ...columnsOf({ ...rootPosition(run_id, segmentOf(start_us, run_id)), is_provisional: true }),
    name: null,
    run_type: DEFAULT_TYPE,
    start_us,
    end_us: null,
    error: null,
    tags: null,
    metadata: null,
    thread_id: null,
    reference_example_id: null,
    inputs_preview: null,
    outputs_preview: null,
    usage_details: null,
    ...NO_USAGE,
    merge_state: 0,
  },
  payload: { inputs: null, outputs: null, error: null, events: null, extra: null, serialized: null },
});

export const columnsOf = ({ is_root, is_provisional, ...position }: TreePosition) => ({
  ...position,
  is_root: is_root ? 1 : 0,
  is_provisional: is_provisional ? 1 : 0,
});

type MergeState = Pick<Run, "merge_state">;

export const isPosted = ({ merge_state }: MergeState): boolean => (merge_state & HAS_POST) !== 0;
export const hasSession = ({ merge_state }: MergeState): boolean => (merge_state & HAS_SESSION) !== 0;
/** Whether the run's own metadata names its thread. */
export const hasThread = ({ merge_state }: MergeState): boolean => (merge_state & HAS_THREAD) !== 0;
export const markSession = (run: MergeState): void => {
  run.merge_state |= HAS_SESSION;
};

/** Merges the fields of an operation, except for the position and the session. Missing fields do not change the run. */
export function mergeFields(draft: RunDraft, { kind, fields }: RunOperation): void {
  const { run, payload } = draft;
  const isPatch = kind === "patch";
  const take = (field: MergedField): boolean => {
    const bit = 1 << MERGED.indexOf(field);
    if (fields[field] === undefined || (!isPatch && (run.merge_state & bit) !== 0)) return false;
    if (isPatch) run.merge_state |= bit;
    return true;
  };
  if (take("name")) run.name = fields.name as string;
  if (take("run_type")) run.run_type = fields.run_type as string;
  if (take("start_time") && run.start_us !== fields.start_time) {
    run.start_us = fields.start_time as number;
    draft.changes_usage = true;
  }
  if (take("end_time")) run.end_us = fields.end_time as number;
  if (take("tags")) run.tags = JSON.stringify(fields.tags);
  if (take("reference_example_id")) run.reference_example_id = fields.reference_example_id as string;
  if (take("inputs")) {
    payload.inputs = JSON.stringify(fields.inputs);
    run.inputs_preview = cutPreview(fields.inputs as JsonObject, "inputs");
  }
  // When a run starts, the Python client posts it with empty outputs and events.
  if (!(kind === "post" && isEmpty(fields.outputs)) && take("outputs")) {
    payload.outputs = JSON.stringify(fields.outputs);
    run.outputs_preview = cutPreview(fields.outputs as JsonObject, "outputs");
    draft.changes_usage = true;
  }
  if (!(kind === "post" && fields.events?.length === 0) && take("events")) {
    payload.events = JSON.stringify(trimEvents(fields.events as JsonObject[]));
    run.first_token_us = firstTokenOf(fields.events as JsonObject[]);
  }
  if (take("error")) {
    payload.error = fields.error === "" ? null : (fields.error as string);
    run.error = payload.error?.slice(0, MAX_ERROR_CHARS).toWellFormed() ?? null;
  }
  if (fields.serialized && !isEmpty(fields.serialized) && take("serialized"))
    payload.serialized = JSON.stringify(fields.serialized);
  if (!SERIALIZED_TYPES.has(run.run_type)) payload.serialized = null;
  if (fields.extra) mergeExtra(draft, fields.extra, isPatch);
  if (fields.run_type !== undefined) draft.changes_usage = true;
  if (!isPatch) run.merge_state |= HAS_POST;
}

const isEmpty = (value: object | undefined): boolean => value !== undefined && Object.keys(value).length === 0;

/** `extra` and `extra.metadata` are merged key by key; a post does not replace keys after a patch has set `extra`. */
function mergeExtra(draft: RunDraft, { metadata, ...extra }: JsonObject, isPatch: boolean): void {
  const { run, payload } = draft;
  const bit = 1 << MERGED.indexOf("extra");
  const keepsOld = !isPatch && (run.merge_state & bit) !== 0;
  const merged = (text: string | null, added: JsonObject): string => {
    const old = text === null ? {} : (JSON.parse(text) as JsonObject);
    return JSON.stringify(keepsOld ? { ...added, ...old } : { ...old, ...added });
  };
  payload.extra = merged(payload.extra, extra);
  if (isObject(metadata)) run.metadata = merged(run.metadata, metadata);
  if (isPatch) run.merge_state |= bit;
  draft.changes_usage = true;
}

/** The built-in prices and those of the workspace. */
export interface Pricing {
  prices: Prices;
  map: PriceMap;
}

const MAX_THREAD_ID_CHARS = 1_000;

/** Computes the columns that depend on several fields: thread, tokens and costs. */
export function deriveColumns(draft: RunDraft, { prices, map }: Pricing): void {
  if (!draft.changes_usage) return;
  const { run, payload } = draft;
  const metadata: JsonObject = run.metadata === null ? {} : JSON.parse(run.metadata);
  const thread = THREAD_KEYS.map((key) => metadata[key]).find((value) => typeof value === "string");
  if (thread !== undefined) {
    run.thread_id = cutToIndex(thread as string, MAX_THREAD_ID_CHARS);
    run.merge_state |= HAS_THREAD;
  }
  const outputs: JsonObject | null = payload.outputs === null ? null : JSON.parse(payload.outputs);
  const extra: JsonObject = payload.extra === null ? {} : JSON.parse(payload.extra);
  const usage = ownUsage({ run_type: run.run_type, outputs, metadata });
  const costs = prices.costOf(usage, modelOf(metadata, extra.invocation_params), run.start_us, map);
  run.prompt_tokens = usage?.prompt_tokens ?? null;
  run.completion_tokens = usage?.completion_tokens ?? null;
  run.total_tokens = usage?.total_tokens ?? null;
  run.prompt_cost = costs?.prompt_cost ?? null;
  run.completion_cost = costs?.completion_cost ?? null;
  run.total_cost = costs?.total_cost ?? null;
  const { prompt_token_details = null, completion_token_details = null } = usage ?? {};
  const { prompt_cost_details = null, completion_cost_details = null } = costs ?? {};
  const details = { prompt_token_details, completion_token_details, prompt_cost_details, completion_cost_details };
  run.usage_details = Object.values(details).some((value) => value !== null) ? JSON.stringify(details) : null;
}

/** Assigns the session and the thread of the root to runs that specify none. The runs may have arrived before the root. */
export function inheritFromRoot(root: TraceNode | undefined, runs: TraceNode[]): void {
  if (!root) return;
  for (const run of runs) {
    if (!hasSession(run)) run.experiment_no = root.experiment_no;
    if (!hasThread(run)) run.thread_id = root.thread_id;
  }
}
