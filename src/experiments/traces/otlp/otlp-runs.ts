import { runIdOfSpan } from "../../../platform/lib/ids.ts";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { isoOfMicroseconds } from "../../../platform/lib/times.ts";
import { type RunFields, RunUpdate } from "../../contract/traces/traces.ts";
import type { Attachment, RunOperation, TraceChanges } from "../operation.ts";
import { EVENT_INPUTS, EVENT_OUTPUTS, parsedJson } from "./attribute-table.ts";
import { type OtlpEvent, type OtlpSpan, type RejectedSpans, STATUS_ERROR } from "./otlp-request.ts";
import { type RunAttributes, readAttributes } from "./run-attributes.ts";
import { placeSpans } from "./span-places.ts";
import type { Attributes } from "./wire-fields.ts";

/** The request headers by lower-case name. */
export type OtlpHeaders = Readonly<Record<string, string | undefined>>;

export interface OtlpRuns {
  changes: TraceChanges;
  rejected: RejectedSpans;
}

interface SpanRun {
  span: OtlpSpan;
  run_id: string;
  run: RunAttributes;
  events: JsonObject[];
  error: string | undefined;
}

/** Converts spans to runs. Spans are sent when they have ended, so each span is one post. A repeated span has the same run id. */
export function toTraceChanges(spans: readonly OtlpSpan[], headers: OtlpHeaders): OtlpRuns {
  const reasons: string[] = [];
  const runs: SpanRun[] = [];
  for (const span of spans) {
    const reason = reasonToReject(span);
    const item = reason === undefined ? readSpan(span) : undefined;
    if (item && nameOf(item) !== "") runs.push(item);
    else reasons.push(`${JSON.stringify(span.span_id.slice(0, 40))} ${reason ?? "has no name"}`);
  }
  const places = placeSpans(runs);
  const threads = threadsOf(runs);
  const of_resource = perResource((resource) => ({
    metadata: resourceMetadata(resource),
    session: { session_name: sessionOf(headers, resource) },
  }));
  const operations: RunOperation[] = [];
  const attachments: Attachment[] = [];
  for (const [index, item] of runs.entries()) {
    const { metadata, session } = of_resource(item.span.resource);
    const place = places[index];
    const fields = { ...fieldsOf(item, metadata, threads), ...(place?.session ?? session), ...place?.fields };
    operations.push({ kind: "post", id: item.run_id, fields: withoutUndefined(fields) });
    for (const attachment of item.run.attachments ?? []) attachments.push({ run_id: item.run_id, ...attachment });
  }
  return {
    changes: { operations, attachments, feedback: [] },
    rejected: { count: reasons.length, message: rejectionMessage(reasons) },
  };
}

const isId = (text: string, bytes: number): boolean =>
  text.length === 2 * bytes && /^[0-9a-f]+$/.test(text) && /[^0]/.test(text);

function reasonToReject({ trace_id, span_id, parent_span_id, start_time, end_time }: OtlpSpan): string | undefined {
  if (!isId(trace_id, 16)) return "has no valid trace ID";
  if (!isId(span_id, 8)) return "has no valid span ID";
  // Some exporters send zeros for "no parent".
  if (/[^0]/.test(parent_span_id) && !isId(parent_span_id, 8)) return "has no valid parent span ID";
  if (!isTime(start_time)) return "has no valid start time";
  return end_time === 0 || isTime(end_time) ? undefined : "has no valid end time";
}

const MAX_NAMED = 5;

function rejectionMessage(reasons: readonly string[]): string {
  if (reasons.length === 0) return "";
  const others = reasons.length > MAX_NAMED ? `; and ${reasons.length - MAX_NAMED} more` : "";
  return `Rejected spans: ${reasons.slice(0, MAX_NAMED).join("; ")}${others}.`;
}

const RUN_ID_AT_END = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function readSpan(span: OtlpSpan): SpanRun {
  const { attributes, events, error } = readEvents(span);
  const run = readAttributes(attributes);
  const run_id =
    run.run_id ?? RUN_ID_AT_END.exec(run.dotted_order ?? "")?.[0].toLowerCase() ?? runIdOfSpan(span.span_id);
  if (run.first_token !== undefined) events.push(tokenEvent(span.start_time + Math.round(run.first_token * 1e6)));
  return { span, run_id, run, events, error };
}

const nameOf = ({ run, span }: SpanRun): string => run.name ?? span.name;

function fieldsOf(item: SpanRun, resource: JsonObject, threads: ReadonlyMap<string, string>): RunFields {
  const { span, run, events, error } = item;
  const metadata: JsonObject = { ...resource, ...run.metadata, otel_trace_id: span.trace_id };
  const thread_id = threads.get(span.trace_id);
  if (thread_id !== undefined) metadata.thread_id ??= thread_id;
  if (span.scope.name !== "") metadata.otel_scope ??= span.scope.name.slice(0, MAX_COPIED_CHARS);
  if (span.links.length > 0)
    metadata.links ??= span.links.map((link) => ({ ...link, attributes: Object.fromEntries(link.attributes) }));
  const params = run.invocation_params;
  return {
    name: RunUpdate.shape.name.parse(nameOf(item)),
    // Instrumentations that send no span kind still name the model in spans that call a model.
    run_type: run.run_type ?? (metadata.ls_model_name === undefined ? "chain" : "llm"),
    start_time: span.start_time,
    end_time: span.end_time === 0 ? undefined : span.end_time,
    inputs: run.inputs,
    outputs: run.outputs,
    error,
    events: events.length > 0 ? events : undefined,
    extra: Object.keys(params).length > 0 ? { metadata, invocation_params: params } : { metadata },
    tags: run.tags,
    reference_example_id: run.reference_example_id,
  };
}

const withoutUndefined = <T extends object>(fields: T): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

/**
 * Limits for values that are copied to each span: without limits, the runs could be larger than the request by a factor of the number of
 * spans.
 */
const MAX_COPIED_CHARS = 1_000;
const MAX_RESOURCE_CHARS = 16_384;

/** The thread id of each trace. Often only the span of the model call contains it. */
function threadsOf(runs: readonly SpanRun[]): Map<string, string> {
  const threads = new Map<string, string>();
  for (const { span, run } of runs) {
    const { thread_id } = run.metadata;
    if (typeof thread_id === "string" && thread_id.length <= MAX_COPIED_CHARS && !threads.has(span.trace_id))
      threads.set(span.trace_id, thread_id);
  }
  return threads;
}

function perResource<T>(compute: (resource: Attributes) => T): (resource: Attributes) => T {
  const computed = new Map<Attributes, T>();
  return (resource) => {
    const value = computed.get(resource) ?? compute(resource);
    computed.set(resource, value);
    return value;
  };
}

const FIRST_RESOURCE_KEYS = ["service.name", "service.version", "deployment.environment.name"];

/** Converts the attributes of a resource to metadata of its runs. Attributes beyond the limit are omitted. */
function resourceMetadata(attributes: Attributes): JsonObject {
  const metadata: JsonObject = {};
  const resource: JsonObject = {};
  let chars = 0;
  const first = FIRST_RESOURCE_KEYS.filter((key) => attributes.has(key));
  for (const key of new Set([...first, ...attributes.keys()])) {
    const value = attributes.get(key);
    chars += key.length + JSON.stringify(value).length;
    if (chars > MAX_RESOURCE_CHARS) break;
    (first.includes(key) ? metadata : resource)[key] = value;
  }
  return Object.keys(resource).length > 0 ? { ...metadata, resource } : metadata;
}

/** The session for spans that name no session. */
function sessionOf(headers: OtlpHeaders, resource: Attributes): string {
  const agent = headers["langsmith-agent-id"];
  const environment = headers["langsmith-agent-environment"];
  const names = [
    headers["langsmith-project"],
    agent && environment && `${agent}/${environment}`,
    resource.get("service.name"),
  ];
  const valid = names.map((name) =>
    name === undefined ? undefined : RunUpdate.shape.session_name.safeParse(name).data,
  );
  return valid.find((name) => name !== undefined) ?? "default";
}

type Meaning = "attributes" | "token" | "choice" | { role: string };

const MEANINGS = new Map<string, Meaning>([
  ["gen_ai.content.prompt", "attributes"],
  ["gen_ai.content.completion", "attributes"],
  ["gen_ai.client.inference.operation.details", "attributes"],
  ["gen_ai.system.message", { role: "system" }],
  ["gen_ai.user.message", { role: "user" }],
  ["gen_ai.assistant.message", { role: "assistant" }],
  ["gen_ai.tool.message", { role: "tool" }],
  ["gen_ai.choice", "choice"],
  ["new_token", "token"],
  ["gen_ai.content.chunk", "token"],
  ["First Token Stream Event", "token"],
]);

interface SpanEvents {
  /** The attributes of the span, with those that events add. */
  attributes: Attributes;
  events: JsonObject[];
  error: string | undefined;
}

function readEvents(span: OtlpSpan): SpanEvents {
  const hasFailed = span.status.code === STATUS_ERROR;
  const exception = hasFailed ? span.events.findLast(({ name }) => name === "exception") : undefined;
  const error = hasFailed ? (exceptionText(exception) ?? (span.status.message || "error")) : undefined;
  if (span.events.length === 0) return { attributes: span.attributes, events: [], error };
  const added: [string, unknown][] = [];
  const events: JsonObject[] = [];
  const inputs: JsonObject[] = [];
  const outputs: JsonObject[] = [];
  for (const event of span.events) {
    const meaning = MEANINGS.get(event.name);
    if (event === exception) continue;
    if (meaning === undefined) events.push(eventOf(event));
    else if (meaning === "attributes") for (const entry of event.attributes) added.push(entry);
    else if (meaning === "token") events.push(tokenEvent(event.time));
    else if (meaning === "choice") outputs.push(choiceOf(event));
    else inputs.push(messageOf(event, meaning.role));
  }
  if (inputs.length > 0) added.push([EVENT_INPUTS, inputs]);
  if (outputs.length > 0) added.push([EVENT_OUTPUTS, outputs]);
  return { attributes: new Map([...added, ...span.attributes]), events, error };
}

/** An event without the token's text, because statistics need only the time. */
const tokenEvent = (us: number): JsonObject => ({ name: "new_token", time: isoOfMicroseconds(us) });

const LATEST_US = 8e15;
const isTime = (us: number): boolean => us > 0 && us < LATEST_US;

function eventOf({ name, time, attributes }: OtlpEvent): JsonObject {
  const event: JsonObject = isTime(time) ? { name, time: isoOfMicroseconds(time) } : { name };
  return attributes.size === 0 ? event : { ...event, kwargs: Object.fromEntries(attributes) };
}

function messageOf({ attributes }: OtlpEvent, role: string): JsonObject {
  const { tool_calls, ...rest } = Object.fromEntries(attributes);
  return { role, ...rest, ...(tool_calls !== undefined && { tool_calls: parsedJson(tool_calls) }) };
}

function choiceOf(event: OtlpEvent): JsonObject {
  const { message, ...rest } = messageOf(event, "assistant");
  const read = parsedJson(message);
  return isObject(read) ? { ...rest, ...read } : message === undefined ? rest : { ...rest, content: message };
}

function exceptionText(event: OtlpEvent | undefined): string | undefined {
  if (event === undefined) return undefined;
  const [type, message, stack] = ["type", "message", "stacktrace"].map((key) => {
    const value = event.attributes.get(`exception.${key}`);
    return typeof value === "string" && value !== "" ? value : undefined;
  });
  const line = [type, message].filter((part) => part !== undefined).join(": ");
  return [line, stack].filter(Boolean).join("\n\n") || undefined;
}
