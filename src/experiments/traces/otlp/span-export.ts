import type { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import type { JsonObject } from "../../../platform/lib/json/json.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { createOtlpExporter, type OtlpBackend, type OtlpExporter } from "../../../platform/lib/otlp-exporter.ts";
import { withTimeout } from "../../../platform/lib/signal.ts";
import type { RunDraft } from "../merge-run.ts";

/** An OpenTelemetry backend that receives the runs that have ended. */
export interface SpanExportOptions extends OtlpBackend {
  /** Whether runs that clients sent are exported in addition to the runs of agents. */
  includes_ingested: boolean;
  has_payloads: boolean;
}

type ReadableSpan = Parameters<typeof ProtobufTraceSerializer.serializeRequest>[0][number];
type Exporter = OtlpExporter<ReadableSpan[]>;

/** Spans per request. */
const BATCH = 512;
/** The maximum number of spans being sent at a time. Further spans are dropped. */
const MAX_PENDING = 20 * BATCH;
const WARNING_INTERVAL_MS = 10_000;
const STOP_MS = 2_000;

const CLIENT_SAMPLED = 1;
const INTERNAL_KIND = 0;
const STATUS = { unset: 0, error: 2 };

/** Sends ended runs to an OpenTelemetry backend. The exporter retries failed requests; a failure never affects what is stored. */
export class SpanExport {
  readonly #options: SpanExportOptions;
  readonly #log: Log;
  readonly #resource: ReadableSpan["resource"];
  #exporter: Promise<Exporter> | undefined;
  #pending = 0;
  #dropped = 0;
  #warned_at = Number.NEGATIVE_INFINITY;

  constructor(options: SpanExportOptions, log: Log) {
    this.#options = options;
    this.#log = log;
    this.#resource = { attributes: options.resource } as unknown as ReadableSpan["resource"];
  }

  /** @param isOfAgent whether the runs are those of an agent */
  export(drafts: readonly RunDraft[], isOfAgent: boolean): void {
    if (!isOfAgent && !this.#options.includes_ingested) return;
    const ended = drafts.filter(({ run, was_ended }) => run.end_us !== null && !was_ended);
    for (let from = 0; from < ended.length; from += BATCH) this.#send(ended.slice(from, from + BATCH));
  }

  /** Waits for the spans that are being sent, up to 2 s. Never rejects: the database must be closed afterwards. */
  async stop(): Promise<void> {
    const stopped = this.#exporter?.then((exporter) => exporter.shutdown()) ?? Promise.resolve();
    await withTimeout(
      stopped.catch((error: Error) => this.#log.warn({ error }, "cannot stop the span exporter")),
      STOP_MS,
    );
  }

  #send(drafts: readonly RunDraft[]): void {
    if (this.#pending + drafts.length > MAX_PENDING) {
      this.#drop(drafts.length, "the backend is too slow");
      return;
    }
    this.#pending += drafts.length;
    const spans = drafts.map((draft) => this.#readable(toSpan(draft, this.#options.has_payloads)));
    this.#exporter ??= createOtlpExporter("traces", this.#options);
    void this.#exporter
      .then((exporter) => exporter.export(spans))
      .catch((error: Error) => this.#drop(drafts.length, error.message))
      .finally(() => {
        this.#pending -= drafts.length;
      });
  }

  #drop(count: number, reason: string): void {
    this.#dropped += count;
    if (performance.now() - this.#warned_at < WARNING_INTERVAL_MS) return;
    this.#warned_at = performance.now();
    this.#log.warn({ dropped: this.#dropped, reason }, "spans not exported");
  }

  #readable({ trace_id, span_id, parent_span_id, error, ...span }: RunSpan): ReadableSpan {
    const contextOf = (spanId: string) => ({ traceId: trace_id, spanId, traceFlags: CLIENT_SAMPLED });
    return {
      name: span.name,
      kind: INTERNAL_KIND,
      spanContext: () => contextOf(span_id),
      parentSpanContext: parent_span_id === undefined ? undefined : contextOf(parent_span_id),
      startTime: timeOf(span.start_us),
      endTime: timeOf(span.end_us),
      duration: timeOf(span.end_us - span.start_us),
      status: error === undefined ? { code: STATUS.unset } : { code: STATUS.error, message: error },
      attributes: span.attributes,
      links: [],
      events: [],
      ended: true,
      resource: this.#resource,
      instrumentationScope: { name: "threadmill" },
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
  }
}

/** Converts microseconds to seconds and nanoseconds. */
const timeOf = (us: number): [number, number] => [Math.floor(us / 1e6), Math.round((us % 1e6) * 1000)];

/** The attributes of a span. Undefined values are left out. */
type Values = Record<string, string | number | boolean | string[] | undefined>;

/** A run as a span, in the terms of OpenTelemetry. */
interface RunSpan {
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
function toSpan({ run, payload }: RunDraft, hasPayloads: boolean): RunSpan {
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
