import type { JsonObject } from "../../../platform/lib/json/json.ts";
import type { RunDraft } from "../merge-run.ts";

/** The attributes of a span. Undefined values are left out. */
type Values = Record<string, string | number | boolean | string[] | undefined>;

/** A run as a span, in the terms of OpenTelemetry. */
export interface RunSpan {
  /** In hexadecimal. */
  trace_id: string;
  span_id: string;
  parent_span_id: string | undefined;
  name: string;
  /** In microseconds. */
  start_us: number;
  end_us: number;
  error: string | undefined;
  attributes: Record<string, string | number | boolean | string[]>;
}

const OPERATIONS: Record<string, string> = {
  llm: "chat",
  embedding: "embeddings",
  tool: "execute_tool",
  retriever: "retrieval",
};

const TRACE_PARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-/;

/**
 * The last 8 bytes of a run id: the first 8 bytes of a UUIDv7 are mostly the time, and runs of the same millisecond could share them.
 * For a run that was received as a span, the result is the id of that span.
 */
const spanIdOf = (run_id: string): string => run_id.replaceAll("-", "").slice(16);

/** @param hasPayloads whether the attributes include the inputs and outputs */
export function toSpan({ run, payload }: RunDraft, hasPayloads: boolean): RunSpan {
  const metadata: JsonObject = run.metadata === null ? {} : JSON.parse(run.metadata);
  const extra: JsonObject = payload.extra === null ? {} : JSON.parse(payload.extra);
  const [, remote_trace] = TRACE_PARENT.exec(String(metadata.traceparent)) ?? [];
  return {
    trace_id: remote_trace ?? run.trace_id.replaceAll("-", ""),
    span_id: spanIdOf(run.run_id),
    parent_span_id: run.parent_run_id === null ? undefined : spanIdOf(run.parent_run_id),
    name: run.name ?? "run",
    start_us: run.start_us,
    end_us: Math.max(run.start_us, run.end_us ?? run.start_us),
    error: run.error ?? undefined,
    attributes: defined({
      ...attributesOf(run, metadata, extra.invocation_params),
      ...(hasPayloads && payloadsOf(run.run_type, payload)),
    }),
  };
}

function attributesOf(run: RunDraft["run"], metadata: JsonObject, params: unknown): Values {
  const model = metadata.ls_model_name ?? (params as JsonObject | undefined)?.model;
  const tags = run.tags === null ? [] : (JSON.parse(run.tags) as string[]);
  const own = Object.entries(metadata).map(([key, value]) => [`langsmith.metadata.${key}`, attributeOf(value)]);
  return {
    ...Object.fromEntries(own),
    "gen_ai.operation.name": OPERATIONS[run.run_type],
    "gen_ai.provider.name": textOf(metadata.ls_provider),
    "gen_ai.request.model": textOf(model),
    "gen_ai.request.temperature": numberOf(metadata.ls_temperature),
    "gen_ai.request.max_tokens": numberOf(metadata.ls_max_tokens),
    "gen_ai.usage.input_tokens": run.prompt_tokens ?? undefined,
    "gen_ai.usage.output_tokens": run.completion_tokens ?? undefined,
    "gen_ai.conversation.id": run.thread_id ?? undefined,
    "gen_ai.tool.name": run.run_type === "tool" ? (run.name ?? undefined) : undefined,
    "gen_ai.agent.name": run.is_root === 1 ? textOf(metadata.graph_id) : undefined,
    "langsmith.span.kind": run.run_type,
    "langsmith.trace.name": run.name ?? undefined,
    "langsmith.span.tags": tags.length > 0 ? tags.join(",") : undefined,
    "langsmith.reference_example_id": run.reference_example_id ?? undefined,
  };
}

function payloadsOf(run_type: string, { inputs, outputs }: RunDraft["payload"]): Values {
  if (run_type === "tool")
    return { "gen_ai.tool.call.arguments": inputs ?? undefined, "gen_ai.tool.call.result": outputs ?? undefined };
  return { "gen_ai.prompt": inputs ?? undefined, "gen_ai.completion": outputs ?? undefined };
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

function attributeOf(value: unknown): Values[string] {
  if (value === null || value === undefined) return undefined;
  return typeof value === "object" ? JSON.stringify(value) : (value as string | number | boolean);
}

const defined = (values: Values): RunSpan["attributes"] =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as RunSpan["attributes"];
