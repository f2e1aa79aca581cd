import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { isoOfMicroseconds } from "../../../platform/lib/times.ts";
import { EVENT_INPUTS, EVENT_OUTPUTS, parsedJson } from "./attribute-table.ts";
import { type OtlpEvent, type OtlpSpan, STATUS_ERROR } from "./otlp-request.ts";
import type { Attributes } from "./wire-fields.ts";

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

export interface SpanEvents {
  /** The attributes of the span, with those that events add. */
  attributes: Attributes;
  events: JsonObject[];
  error: string | undefined;
}

export function readEvents(span: OtlpSpan): SpanEvents {
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
export const tokenEvent = (us: number): JsonObject => ({ name: "new_token", time: isoOfMicroseconds(us) });

const LATEST_US = 8e15;
export const isTime = (us: number): boolean => us > 0 && us < LATEST_US;

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
