import { isObject, parseUntrusted } from "../../../platform/lib/json/json.ts";
import { MAX_ATTACHMENT_NAME } from "../../contract/datasets/examples.ts";
import { RunUpdate } from "../../contract/traces/traces.ts";
import type { Attributes } from "./wire-fields.ts";

/** Converts the value of an attribute. Returns undefined if the row does not accept the value; the attribute then stays in the metadata. */
export type Reader = (value: unknown, all: Attributes) => unknown;

/**
 * Maps attributes, in order of precedence, to targets, which are paths in RunAttributes. If a name ends in `.*`, the rest of the
 * attribute's name replaces `*` in the target. If a name ends in `.#`, numbered attributes are read as one list. If a name has no wildcard,
 * a target that ends in `/*` receives each key of the value.
 */
type Row = [attributes: string[], read: Reader, ...targets: string[]];

const any: Reader = (value) => value ?? undefined;
const string: Reader = (value) => (typeof value === "string" && value !== "" ? value : undefined);
const count: Reader = (value) => (Number.isSafeInteger(value) && (value as number) >= 0 ? value : undefined);
const seconds: Reader = (value) => (typeof value === "number" && value >= 0 && value < 1e6 ? value : undefined);
const list: Reader = (value) => asArray(parsedJson(value));
const object: Reader = (value) => asObject(parsedJson(value));

const asArray = (value: unknown) => (Array.isArray(value) ? value : undefined);
const asObject = (value: unknown) => (isObject(value) ? value : undefined);

/** Reads a value that has the meaning of a field of the JSON API, and validates it like that field. */
const field =
  (name: keyof typeof RunUpdate.shape): Reader =>
  (value) =>
    RunUpdate.shape[name].safeParse(value).data ?? undefined;

/** Objects and arrays are often sent as JSON text. Other texts, and JSON that exceeds the limits, are returned unchanged. */
export function parsedJson(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return parseUntrusted(value);
  } catch {
    return value;
  }
}

/** Reads inputs or outputs: objects (also in JSON text) unchanged, null as absent, and other values as an object with one key. */
const payload =
  (key: string, list_key = key): Reader =>
  (value) => {
    if (value === null) return undefined;
    const read = parsedJson(value);
    return isObject(read) ? read : { [Array.isArray(read) ? list_key : key]: read };
  };

const withSystemInstructions: Reader = (value, all) => {
  const read = asArray(parsedJson(value));
  const system = all.get("gen_ai.system_instructions");
  if (read === undefined || system === undefined) return read;
  const instructions = parsedJson(system);
  return [{ role: "system", [Array.isArray(instructions) ? "parts" : "content"]: instructions }, ...read];
};

const documents: Reader = (value) =>
  asArray(value)?.map((item) => {
    if (!isObject(item)) return { page_content: item, metadata: {} };
    const { content, metadata, ...rest } = item;
    return { page_content: content, metadata: parsedJson(metadata) ?? {}, ...rest };
  });

const tags: Reader = (value, all) =>
  field("tags")(typeof value === "string" ? value.split(",").flatMap((tag) => tag.trim() || []) : value, all);

const attachments: Reader = (value) =>
  asArray(parsedJson(value))?.flatMap((item) => {
    const { name, content, mime_type = "application/octet-stream" } = asObject(item) ?? {};
    if (typeof name !== "string" || typeof content !== "string" || typeof mime_type !== "string") return [];
    return [
      {
        name: name.slice(0, MAX_ATTACHMENT_NAME),
        mime_type: mime_type.slice(0, 200),
        data: new Uint8Array(Buffer.from(content, "base64")),
      },
    ];
  });

const KINDS: Record<string, string> = {
  llm: "llm",
  embedding: "embedding",
  retriever: "retriever",
  reranker: "retriever",
  tool: "tool",
  prompt: "prompt",
  parser: "parser",
};

const OPERATIONS: Record<string, string> = {
  chat: "llm",
  completion: "llm",
  text_completion: "llm",
  generate_content: "llm",
  embeddings: "embedding",
  execute_tool: "tool",
  retrieval: "retriever",
};

/** Reads a run type. A value that is not in the table has the type `chain`: agents, workflows, and names that are newer than the table. */
const typeIn =
  (types: Record<string, string>): Reader =>
  (value) => {
    if (typeof value !== "string") return undefined;
    const name = value.toLowerCase();
    return Object.hasOwn(types, name) ? types[name] : "chain";
  };

const toolName: Reader = (value, all) =>
  String(all.get("openinference.span.kind")).toLowerCase() === "tool" ? string(value, all) : undefined;

const METADATA = "metadata";
const PARAMS = "invocation_params";
const USAGE = "metadata/usage_metadata";

const REQUEST_PARAMS = [
  "temperature",
  "top_p",
  "top_k",
  "max_tokens",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "choice.count",
  "encoding_formats",
];

/** Attribute names under which `readEvents` adds the messages that a span has as events. */
export const EVENT_INPUTS = "gen_ai.events.inputs";
export const EVENT_OUTPUTS = "gen_ai.events.outputs";

export const ROWS: readonly Row[] = [
  [["langsmith.span.id"], field("trace_id"), "run_id"],
  [["langsmith.trace.id"], field("trace_id"), "trace_id"],
  [["langsmith.span.parent_id"], field("parent_run_id"), "parent_run_id"],
  [["langsmith.span.dotted_order"], field("dotted_order"), "dotted_order"],
  [["langsmith.trace.session_name"], field("session_name"), "session_name"],
  [["langsmith.trace.session_id"], field("session_id"), "session_id"],
  [["langsmith.trace.name", "traceloop.entity.name"], string, "name"],
  [["tool.name"], toolName, "name"],
  [["langsmith.span.kind"], typeIn(KINDS), "run_type"],
  [["gen_ai.operation.name"], typeIn(OPERATIONS), "run_type"],
  [["gen_ai.tool.name"], (value, all) => string(value, all) && "tool", "run_type"],
  [["openinference.span.kind", "traceloop.span.kind"], typeIn(KINDS), "run_type"],
  [["gen_ai.tool.name"], string, `${PARAMS}/tool_name`],
  [["langsmith.span.tags"], tags, "tags"],
  [["langsmith.metadata.*"], any, `${METADATA}/*`],
  [["traceloop.association.properties.*", "ai.telemetry.metadata.*"], any, `${METADATA}/*`],
  [["metadata"], object, `${METADATA}/*`],
  [["langsmith.usage_metadata"], object, `${USAGE}/*`],
  [["langsmith.reference_example_id"], field("reference_example_id"), "reference_example_id"],
  [["langsmith.attachments"], attachments, "attachments"],
  [["gen_ai.provider.name", "gen_ai.system", "llm.system"], string, `${METADATA}/ls_provider`],
  [
    ["gen_ai.request.model", "gen_ai.response.model", "llm.model_name"],
    string,
    `${METADATA}/ls_model_name`,
    `${PARAMS}/model`,
  ],
  [["gen_ai.response.model"], string, `${METADATA}/response_model`],
  ...REQUEST_PARAMS.map((name): Row => [[`gen_ai.request.${name}`], any, `${PARAMS}/${name}`]),
  [["gen_ai.request.stop_sequences"], any, `${PARAMS}/stop`],
  [["gen_ai.tool.definitions"], list, `${PARAMS}/tools`],
  [["llm.invocation_parameters"], object, `${PARAMS}/*`],
  [
    ["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.promptTokens"],
    count,
    `${USAGE}/input_tokens`,
  ],
  [
    [
      "gen_ai.usage.output_tokens",
      "gen_ai.usage.completion_tokens",
      "llm.token_count.completion",
      "ai.usage.completionTokens",
    ],
    count,
    `${USAGE}/output_tokens`,
  ],
  [["gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens"], count, `${USAGE}/total_tokens`],
  [["gen_ai.usage.cache_read.input_tokens"], count, `${USAGE}/input_token_details/cache_read`],
  [["gen_ai.usage.cache_creation.input_tokens"], count, `${USAGE}/input_token_details/cache_creation`],
  [["gen_ai.usage.input_token_details"], object, `${USAGE}/input_token_details/*`],
  [
    ["gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.details.reasoning_tokens"],
    count,
    `${USAGE}/output_token_details/reasoning`,
  ],
  [["gen_ai.usage.output_token_details"], object, `${USAGE}/output_token_details/*`],
  [["gen_ai.tool.call.arguments"], payload("input"), "inputs"],
  [["gen_ai.tool.call.result"], payload("output"), "outputs"],
  [["gen_ai.input.messages"], withSystemInstructions, "inputs/messages"],
  [["gen_ai.system_instructions"], (_, all) => withSystemInstructions([], all), "inputs/messages"],
  [["gen_ai.output.messages"], list, "outputs/messages"],
  [["gen_ai.prompt"], payload("input", "messages"), "inputs"],
  [["gen_ai.completion"], payload("output", "messages"), "outputs"],
  [["gen_ai.prompt.#", EVENT_INPUTS, "llm.input_messages.#"], list, "inputs/messages"],
  [["gen_ai.completion.#", EVENT_OUTPUTS, "llm.output_messages.#"], list, "outputs/messages"],
  [["retrieval.documents.#"], documents, "outputs/documents"],
  [["ai.toolCall.args", "input.value", "traceloop.entity.input"], payload("input"), "inputs"],
  [["ai.toolCall.result", "output.value", "traceloop.entity.output"], payload("output"), "outputs"],
  [["ai.prompt.messages", "ai.prompt"], payload("input", "messages"), "inputs"],
  [["ai.response.text"], string, "outputs/text"],
  [["ai.response.toolCalls"], list, "outputs/tool_calls"],
  [["gen_ai.conversation.id", "session.id"], string, `${METADATA}/thread_id`],
  [["gen_ai.server.time_to_first_token", "gen_ai.response.time_to_first_chunk"], seconds, "first_token"],
];
