import { JsonTraceSerializer, ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { describe, expect, it } from "vitest";
import { readOtlpRequest } from "../../src/experiments/traces/otlp/otlp-request.ts";
import { type OtlpHeaders, toTraceChanges } from "../../src/experiments/traces/otlp/otlp-runs.ts";

type ReadableSpan = Parameters<typeof JsonTraceSerializer.serializeRequest>[0][number];

const PROTOBUF = "application/x-protobuf";
const JSON_TYPE = "application/json; charset=utf-8";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const ROOT = "00f067aa0ba902b7";
const ROOT_RUN = "00000000-0000-0000-00f0-67aa0ba902b7";
const CHILD = "b7ad6b7169203331";
const CHILD_RUN = "00000000-0000-0000-b7ad-6b7169203331";
/** 2026-01-31T12:00:00.123456789Z */
const START: [number, number] = [1769860800, 123456789];
const END: [number, number] = [1769860801, 500000000];

interface SpanOptions {
  trace?: string;
  id?: string;
  parent?: string;
  name?: string;
  start?: [number, number];
  end?: [number, number];
  attributes?: object;
  events?: { name: string; attributes?: object; time?: [number, number] }[];
  links?: ReadableSpan["links"];
  status?: ReadableSpan["status"];
  resource?: object;
}

const SCOPE = { name: "openai", version: "1.0.0" };
const SERVICE = { "service.name": "shop", "host.name": "h1" };
const resources = new Map<object, ReadableSpan["resource"]>();

function resourceOf(attributes: object): ReadableSpan["resource"] {
  const known = resources.get(attributes) ?? ({ attributes } as ReadableSpan["resource"]);
  resources.set(attributes, known);
  return known;
}

function span(options: SpanOptions = {}): ReadableSpan {
  const trace = options.trace ?? TRACE;
  const contextOf = (id: string) => ({ traceId: trace, spanId: id, traceFlags: 1 });
  return {
    name: options.name ?? "work",
    kind: 0,
    spanContext: () => contextOf(options.id ?? ROOT),
    parentSpanContext: options.parent === undefined ? undefined : contextOf(options.parent),
    startTime: options.start ?? START,
    endTime: options.end ?? END,
    duration: [1, 0],
    ended: true,
    status: options.status ?? { code: 0 },
    attributes: (options.attributes ?? {}) as ReadableSpan["attributes"],
    events: (options.events ?? []).map(({ name, attributes = {}, time = START }) => ({
      name,
      time,
      attributes: attributes as ReadableSpan["attributes"],
    })),
    links: options.links ?? [],
    resource: resourceOf(options.resource ?? SERVICE),
    instrumentationScope: SCOPE,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  } as ReadableSpan;
}

const encoders = [
  [PROTOBUF, ProtobufTraceSerializer],
  [JSON_TYPE, JsonTraceSerializer],
] as const;

/** What the official exporter's bytes become, the same in both encodings. */
function ingest(spans: ReadableSpan[], headers: OtlpHeaders = {}) {
  const [first, second] = encoders.map(([type, serializer]) =>
    toTraceChanges(readOtlpRequest(serializer.serializeRequest(spans) as Uint8Array, type), headers),
  );
  expect(second).toEqual(first);
  return first as NonNullable<typeof first>;
}

function fieldsOf(options: SpanOptions, headers?: OtlpHeaders) {
  const { changes, rejected } = ingest([span(options)], headers);
  expect(rejected).toEqual({ count: 0, message: "" });
  // biome-ignore lint/suspicious/noExplicitAny: the expectations name the paths.
  return changes.operations[0]?.fields as any;
}

const ofAttributes = (attributes: object) => fieldsOf({ attributes });

function at(fields: unknown, path: string): unknown {
  return path.split("/").reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], fields);
}

const json = (value: unknown): string => JSON.stringify(value);
const UUID = "0198a1b2-0000-7000-8000-000000000001";
const MESSAGES = [{ role: "user", parts: [{ type: "text", content: "Hi" }] }];
const ANSWER = [{ role: "assistant", parts: [{ type: "text", content: "Hello" }], finish_reason: "stop" }];
const M = "extra/metadata";
const P = "extra/invocation_params";
const U = `${M}/usage_metadata`;

/** Attributes, the path of the field, its value: every row of section 8.1 of the contract, each source. */
const TABLE: [attributes: object, path: string, value: unknown][] = [
  [{ "langsmith.trace.name": "answer" }, "name", "answer"],
  [{ "traceloop.entity.name": "plan" }, "name", "plan"],
  [{ "tool.name": "weather", "openinference.span.kind": "TOOL" }, "name", "weather"],
  [{ "tool.name": "weather" }, "name", "work"],
  [{ "tool.name": "weather" }, `${M}/tool.name`, "weather"],
  [{}, "name", "work"],
  [{}, "run_type", "chain"],
  ...["langsmith.span.kind", "openinference.span.kind", "traceloop.span.kind"].flatMap((name) =>
    [
      ["LLM", "llm"],
      ["EMBEDDING", "embedding"],
      ["RETRIEVER", "retriever"],
      ["RERANKER", "retriever"],
      ["TOOL", "tool"],
      ["PROMPT", "prompt"],
      ["workflow", "chain"],
      ["constructor", "chain"],
    ].map(([kind, type]): [object, string, unknown] => [{ [name as string]: kind }, "run_type", type]),
  ),
  ...Object.entries({
    chat: "llm",
    completion: "llm",
    text_completion: "llm",
    generate_content: "llm",
    embeddings: "embedding",
    execute_tool: "tool",
    invoke_agent: "chain",
    create_agent: "chain",
    invoke_workflow: "chain",
    retrieval: "retriever",
    other: "chain",
  }).map(([name, type]): [object, string, unknown] => [{ "gen_ai.operation.name": name }, "run_type", type]),
  [{ "gen_ai.tool.name": "search" }, "run_type", "tool"],
  [{ "gen_ai.tool.name": "search" }, `${P}/tool_name`, "search"],
  [{ "gen_ai.tool.call.arguments": '{"q":1}' }, "inputs", { q: 1 }],
  [{ "gen_ai.tool.call.arguments": "plain" }, "inputs", { input: "plain" }],
  [{ "gen_ai.tool.call.result": "[1]" }, "outputs", { output: [1] }],
  [{ "ai.toolCall.args": '{"q":1}' }, "inputs", { q: 1 }],
  [{ "ai.toolCall.result": '{"a":1}' }, "outputs", { a: 1 }],
  [{ "langsmith.span.tags": " a, b,,c " }, "tags", ["a", "b", "c"]],
  [{ "langsmith.span.tags": ["a", "b"] }, "tags", ["a", "b"]],
  [{ "langsmith.metadata.user.team": "x" }, `${M}/user.team`, "x"],
  [{ "traceloop.association.properties.user": "x" }, `${M}/user`, "x"],
  [{ "ai.telemetry.metadata.user": "x" }, `${M}/user`, "x"],
  [{ metadata: '{"user":"x"}' }, `${M}/user`, "x"],
  [{ metadata: "text" }, `${M}/metadata`, "text"],
  [{ "langsmith.metadata.ls_project_name": "p1" }, "session_name", "p1"],
  [{ "langsmith.trace.session_name": "p2" }, "session_name", "p2"],
  [{ "langsmith.trace.session_id": UUID }, "session_id", UUID],
  [{ "langsmith.usage_metadata": '{"input_tokens":3}' }, U, { input_tokens: 3 }],
  [{ "langsmith.reference_example_id": UUID }, "reference_example_id", UUID],
  [{ "langsmith.reference_example_id": "x" }, `${M}/langsmith.reference_example_id`, "x"],
  ...["gen_ai.provider.name", "gen_ai.system", "llm.system"].map((name): [object, string, unknown] => [
    { [name]: "openai" },
    `${M}/ls_provider`,
    "openai",
  ]),
  ...["gen_ai.request.model", "llm.model_name", "gen_ai.response.model"].flatMap(
    (name): [object, string, unknown][] => [
      [{ [name]: "m" }, `${M}/ls_model_name`, "m"],
      [{ [name]: "m" }, `${P}/model`, "m"],
      [{ [name]: "m" }, "run_type", "llm"],
    ],
  ),
  [{ "gen_ai.response.model": "m-1", "gen_ai.request.model": "m" }, `${M}/response_model`, "m-1"],
  ...[
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "choice.count",
  ].map((name): [object, string, unknown] => [{ [`gen_ai.request.${name}`]: 7 }, `${P}/${name}`, 7]),
  [{ "gen_ai.request.encoding_formats": ["float"] }, `${P}/encoding_formats`, ["float"]],
  [{ "gen_ai.request.stop_sequences": ["."] }, `${P}/stop`, ["."]],
  [{ "gen_ai.request.stop_sequences": ["."] }, `${M}/ls_stop`, ["."]],
  [{ "gen_ai.request.temperature": 0.5 }, `${M}/ls_temperature`, 0.5],
  [{ "gen_ai.request.max_tokens": 9 }, `${M}/ls_max_tokens`, 9],
  [{ "llm.invocation_parameters": '{"temperature":0.1,"n":2}' }, P, { temperature: 0.1, n: 2 }],
  [{ "llm.invocation_parameters": '{"temperature":0.1}' }, `${M}/ls_temperature`, 0.1],
  ...["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.promptTokens"].map(
    (name): [object, string, unknown] => [{ [name]: 5 }, `${U}/input_tokens`, 5],
  ),
  ...[
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.completionTokens",
  ].map((name): [object, string, unknown] => [{ [name]: 5 }, `${U}/output_tokens`, 5]),
  ...["gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens"].map(
    (name): [object, string, unknown] => [{ [name]: 5 }, `${U}/total_tokens`, 5],
  ),
  [{ "gen_ai.usage.cache_read.input_tokens": 2 }, `${U}/input_token_details/cache_read`, 2],
  [{ "gen_ai.usage.cache_creation.input_tokens": 2 }, `${U}/input_token_details/cache_creation`, 2],
  [{ "gen_ai.usage.input_token_details": '{"cache_read":2}' }, `${U}/input_token_details`, { cache_read: 2 }],
  [{ "gen_ai.usage.reasoning.output_tokens": 2 }, `${U}/output_token_details/reasoning`, 2],
  [{ "gen_ai.usage.details.reasoning_tokens": 2 }, `${U}/output_token_details/reasoning`, 2],
  [{ "gen_ai.usage.output_token_details": '{"reasoning":2}' }, `${U}/output_token_details`, { reasoning: 2 }],
  [{ "gen_ai.input.messages": json(MESSAGES) }, "inputs/messages", MESSAGES],
  [{ "gen_ai.output.messages": json(ANSWER) }, "outputs/messages", ANSWER],
  [
    { "gen_ai.input.messages": json(MESSAGES), "gen_ai.system_instructions": '[{"type":"text","content":"Be"}]' },
    "inputs/messages",
    [{ role: "system", parts: [{ type: "text", content: "Be" }] }, ...MESSAGES],
  ],
  [{ "gen_ai.system_instructions": "Be" }, "inputs/messages", [{ role: "system", content: "Be" }]],
  [{ "gen_ai.prompt": '{"a":1}' }, "inputs", { a: 1 }],
  [{ "gen_ai.prompt": '[{"role":"user"}]' }, "inputs", { messages: [{ role: "user" }] }],
  [{ "gen_ai.prompt": "Hi" }, "inputs", { input: "Hi" }],
  [{ "gen_ai.completion": '{"a":1}' }, "outputs", { a: 1 }],
  [{ "gen_ai.completion": "[]" }, "outputs", { messages: [] }],
  [{ "gen_ai.completion": "Hello" }, "outputs", { output: "Hello" }],
  [
    { "gen_ai.prompt.10.content": "b", "gen_ai.prompt.2.content": "a", "gen_ai.prompt.2.role": "user" },
    "inputs/messages",
    [{ content: "a", role: "user" }, { content: "b" }],
  ],
  [{ "gen_ai.prompt.0.content": "a", "gen_ai.prompt.0.content.type": "b" }, `${M}/gen_ai.prompt.0.content.type`, "b"],
  [
    { "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.tool_calls.0.name": "f" },
    "outputs/messages",
    [{ role: "assistant", tool_calls: [{ name: "f" }] }],
  ],
  [{ "llm.input_messages.0.message.role": "user" }, "inputs/messages", [{ role: "user" }]],
  [
    { "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f" },
    "outputs/messages",
    [{ tool_calls: [{ function: { name: "f" } }] }],
  ],
  [{ "input.value": "Hi" }, "inputs", { input: "Hi" }],
  [{ "input.value": '{"a":[1]}' }, "inputs", { a: [1] }],
  [{ "input.value": '{"a":' }, "inputs", { input: '{"a":' }],
  [{ "output.value": "[1]" }, "outputs", { output: [1] }],
  [{ "traceloop.entity.input": '{"a":1}' }, "inputs", { a: 1 }],
  [{ "traceloop.entity.output": '{"a":1}' }, "outputs", { a: 1 }],
  [{ "ai.prompt": '{"prompt":"Hi"}' }, "inputs", { prompt: "Hi" }],
  [{ "ai.prompt.messages": '[{"role":"user"}]' }, "inputs", { messages: [{ role: "user" }] }],
  [{ "ai.response.text": "Hello" }, "outputs/text", "Hello"],
  [{ "ai.response.toolCalls": '[{"toolName":"f"}]' }, "outputs/tool_calls", [{ toolName: "f" }]],
  [
    { "retrieval.documents.0.document.content": "c", "retrieval.documents.0.document.metadata": '{"s":1}' },
    "outputs/documents",
    [{ page_content: "c", metadata: { s: 1 } }],
  ],
  [{ "gen_ai.conversation.id": "t" }, `${M}/thread_id`, "t"],
  [{ "session.id": "t" }, `${M}/thread_id`, "t"],
  ...[
    "gen_ai.agent.id",
    "gen_ai.agent.name",
    "gen_ai.agent.version",
    "gen_ai.response.id",
    "user.id",
    "http.route",
  ].map((name): [object, string, unknown] => [{ [name]: "x" }, `${M}/${name}`, "x"]),
  [{ "gen_ai.response.finish_reasons": ["stop"] }, `${M}/gen_ai.response.finish_reasons`, ["stop"]],
  [{ "gen_ai.tool.definitions": '[{"name":"f"}]' }, `${P}/tools`, [{ name: "f" }]],
  ...["gen_ai.server.time_to_first_token", "gen_ai.response.time_to_first_chunk"].map(
    (name): [object, string, unknown] => [
      { [name]: 0.25 },
      "events",
      [{ name: "new_token", time: "2026-01-31T12:00:00.373456+00:00" }],
    ],
  ),
  // Precedence
  [{ "gen_ai.operation.name": "chat", "langsmith.span.kind": "tool" }, "run_type", "tool"],
  [{ "openinference.span.kind": "AGENT", "gen_ai.operation.name": "chat" }, "run_type", "llm"],
  [{ "llm.model_name": "b", "gen_ai.response.model": "a" }, `${M}/ls_model_name`, "a"],
  [{ "gen_ai.system": "b", "langsmith.metadata.ls_provider": "a" }, `${M}/ls_provider`, "a"],
  [{ "gen_ai.usage.input_tokens": 1, "langsmith.usage_metadata": '{"input_tokens":3}' }, `${U}/input_tokens`, 3],
  [{ "gen_ai.usage.input_tokens": "many", "llm.token_count.prompt": 4 }, `${U}/input_tokens`, 4],
  [{ "input.value": "x", "gen_ai.prompt.0.content": "a" }, "inputs", { messages: [{ content: "a" }] }],
  [{ "llm.input_messages.0.message.content": "b", "gen_ai.prompt": '{"a":1}' }, "inputs", { a: 1 }],
];

describe("the table of attributes", () => {
  it.each(TABLE)("%j is %s = %j", (attributes, path, value) => {
    expect(at(ofAttributes(attributes), path)).toEqual(value);
  });

  it("reads structured values like JSON text", () => {
    const fields = ofAttributes({ "gen_ai.input.messages": MESSAGES });
    expect(fields.inputs.messages).toEqual(MESSAGES);
  });

  it("leaves what it read out of the metadata", () => {
    const fields = ofAttributes({ "gen_ai.request.model": "m", "gen_ai.prompt.0.role": "user", "input.value": "x" });
    expect(fields.extra.metadata).toEqual({
      otel_trace_id: TRACE,
      "service.name": "shop",
      ls_model_name: "m",
      resource: { "host.name": "h1" },
      otel_scope: "openai",
    });
  });

  it("reads attachments, and ignores invalid ones", () => {
    const list = [{ name: "a", content: Buffer.from("hi").toString("base64"), mime_type: "text/plain" }, { name: 1 }];
    const { changes } = ingest([span({ attributes: { "langsmith.attachments": json(list) } })]);
    expect(changes.attachments).toEqual([
      { run_id: ROOT_RUN, name: "a", mime_type: "text/plain", data: new TextEncoder().encode("hi") },
    ]);
  });
});

describe("spans", () => {
  it("have the id, the times and the place of their run", () => {
    const { changes } = ingest([span({ id: CHILD, parent: ROOT, name: "chat" }), span()]);
    const segment = (id: string) => `20260131T120000123456Z${id}`;
    expect(changes.operations).toMatchObject([
      {
        kind: "post",
        id: CHILD_RUN,
        fields: {
          name: "chat",
          start_time: 1769860800123456,
          end_time: 1769860801500000,
          parent_run_id: ROOT_RUN,
          trace_id: ROOT_RUN,
          dotted_order: `${segment(ROOT_RUN)}.${segment(CHILD_RUN)}`,
        },
      },
      { kind: "post", id: ROOT_RUN, fields: { trace_id: ROOT_RUN, dotted_order: segment(ROOT_RUN) } },
    ]);
    expect(changes.operations[1]?.fields).not.toHaveProperty("parent_run_id");
  });

  it("have only their parent when the root is unknown", () => {
    const { changes } = ingest([
      span({ id: CHILD, parent: ROOT }),
      span({ id: "c000000000000001", parent: CHILD }),
      // The same span id in another trace is no parent.
      span({ id: "c000000000000002", parent: "c000000000000003" }),
      span({ id: "c000000000000003", trace: TRACE.replace("0af", "1af") }),
    ]);
    for (const { fields } of changes.operations.slice(0, 3)) {
      expect(fields).not.toHaveProperty("dotted_order");
      expect(fields).not.toHaveProperty("trace_id");
    }
    expect(changes.operations.map(({ fields }) => fields.parent_run_id)).toEqual([
      ROOT_RUN,
      CHILD_RUN,
      "00000000-0000-0000-c000-000000000003",
      undefined,
    ]);
  });

  it("nest below a run of LangSmith's SDK", () => {
    const order = `20260131T120000000000Z${UUID}`;
    const own = "0198a1b2-0000-7000-8000-000000000002";
    const { changes } = ingest([
      span({
        attributes: {
          "langsmith.span.id": own,
          "langsmith.span.dotted_order": `${order}.20260131T120000123456Z${own}`,
        },
      }),
      span({ id: CHILD, parent: ROOT }),
    ]);
    expect(changes.operations).toMatchObject([
      { id: own, fields: { dotted_order: `${order}.20260131T120000123456Z${own}` } },
      {
        id: CHILD_RUN,
        fields: {
          parent_run_id: own,
          trace_id: UUID,
          dotted_order: `${order}.20260131T120000123456Z${own}.20260131T120000123456Z${CHILD_RUN}`,
        },
      },
    ]);
    const parent = ofAttributes({ "langsmith.trace.id": UUID, "langsmith.span.parent_id": own });
    expect(parent).toMatchObject({ trace_id: UUID, parent_run_id: own });
    expect(ofAttributes({ "langsmith.trace.id": UUID })).toMatchObject({ trace_id: UUID, parent_run_id: UUID });
    expect(ofAttributes({ "langsmith.span.id": "x" }).extra.metadata["langsmith.span.id"]).toBe("x");
  });

  it("share the conversation and the named session of their trace", () => {
    const { changes } = ingest([
      span({ attributes: { "langsmith.trace.session_name": "named" } }),
      span({ id: CHILD, parent: ROOT, attributes: { "gen_ai.conversation.id": "t1" } }),
      span({ id: "c000000000000001", trace: TRACE.replace("0af", "1af") }),
    ]);
    expect(changes.operations.map(({ fields }) => fields.session_name)).toEqual(["named", "named", "shop"]);
    expect(changes.operations.map(({ fields }) => at(fields, "extra/metadata/thread_id"))).toEqual([
      "t1",
      "t1",
      undefined,
    ]);
  });

  it.each<[OtlpHeaders, object, string]>([
    [{ "langsmith-project": "p", "langsmith-agent-id": "a", "langsmith-agent-environment": "e" }, SERVICE, "p"],
    [{ "langsmith-agent-id": "a", "langsmith-agent-environment": "e" }, SERVICE, "a/e"],
    [{ "langsmith-agent-id": "a" }, SERVICE, "shop"],
    [{}, {}, "default"],
  ])("with the headers %j and the resource %j go to the session %s", (headers, resource, session) => {
    expect(fieldsOf({ resource }, headers).session_name).toBe(session);
  });

  it("keep resource, links and other attributes in the metadata", () => {
    const fields = fieldsOf({
      resource: { "host.name": "h", "service.version": "2", "service.name": "s", "deployment.environment.name": "e" },
      attributes: { flag: true, big: 2.5, none: undefined, otel_trace_id: "x" },
      links: [{ context: { traceId: TRACE, spanId: CHILD, traceFlags: 0 }, attributes: { a: 1 } }],
    });
    expect(json(fields.extra.metadata)).toBe(
      json({
        "service.name": "s",
        "service.version": "2",
        "deployment.environment.name": "e",
        resource: { "host.name": "h" },
        flag: true,
        big: 2.5,
        otel_trace_id: TRACE,
        otel_scope: "openai",
        links: [{ trace_id: TRACE, span_id: CHILD, attributes: { a: 1 } }],
      }),
    );
  });

  it("do not repeat a large resource", () => {
    const resource = { "service.name": "s", "process.command_args": ["x".repeat(20_000)], later: 1 };
    expect(fieldsOf({ resource }).extra.metadata).not.toHaveProperty("resource");
  });
});

describe("status and events", () => {
  const exception = (attributes: object) => ({ name: "exception", attributes });
  const boom = { "exception.type": "E", "exception.message": "boom", "exception.stacktrace": "at x" };

  it.each([
    [2, "failed", [exception(boom)], "E: boom\n\nat x"],
    [2, "failed", [exception({ "exception.message": "first" }), exception({ "exception.message": "last" })], "last"],
    [2, "failed", [exception({})], "failed"],
    [2, "failed", [], "failed"],
    [2, undefined, [], "error"],
    [1, "failed", [exception(boom)], undefined],
    [0, undefined, [exception(boom)], undefined],
  ])("status %i %s with %j is the error %j", (code, message, events, error) => {
    const fields = fieldsOf({ status: { code, message }, events });
    expect(fields.error).toBe(error);
    // The event that is the error is not repeated.
    expect(fields.events?.length ?? 0).toBe(Math.max(0, events.length - (code === 2 ? 1 : 0)));
  });

  it("keeps an exception of a span without error, and other events", () => {
    const fields = fieldsOf({ events: [exception({ "exception.message": "m" }), { name: "retry" }] });
    const time = "2026-01-31T12:00:00.123456+00:00";
    expect(fields.events).toEqual([
      { name: "exception", time, kwargs: { "exception.message": "m" } },
      { name: "retry", time },
    ]);
  });

  it.each(["new_token", "gen_ai.content.chunk", "First Token Stream Event"])(
    "%s is a new token without text",
    (name) => {
      const { events } = fieldsOf({ events: [{ name, attributes: { token: "Hi" } }] });
      expect(events).toEqual([{ name: "new_token", time: "2026-01-31T12:00:00.123456+00:00" }]);
    },
  );

  it("reads the messages of events", () => {
    const calls = [{ id: "c1", function: { name: "f" } }];
    const fields = fieldsOf({
      attributes: { "gen_ai.operation.name": "chat" },
      events: [
        { name: "gen_ai.system.message", attributes: { content: "Be" } },
        { name: "gen_ai.user.message", attributes: { content: "Hi" } },
        { name: "gen_ai.assistant.message", attributes: { tool_calls: json(calls) } },
        { name: "gen_ai.tool.message", attributes: { id: "c1", content: "{}" } },
        { name: "gen_ai.choice", attributes: { index: 0, finish_reason: "stop", message: '{"content":"Hello"}' } },
      ],
    });
    expect(fields.inputs.messages).toEqual([
      { role: "system", content: "Be" },
      { role: "user", content: "Hi" },
      { role: "assistant", tool_calls: calls },
      { role: "tool", id: "c1", content: "{}" },
    ]);
    expect(fields.outputs.messages).toEqual([{ role: "assistant", index: 0, finish_reason: "stop", content: "Hello" }]);
    expect(fields).not.toHaveProperty("events");
  });

  it.each([
    ["gen_ai.content.prompt", { "gen_ai.prompt": "Hi" }, { inputs: { input: "Hi" } }],
    ["gen_ai.content.completion", { "gen_ai.completion": "Yes" }, { outputs: { output: "Yes" } }],
    [
      "gen_ai.client.inference.operation.details",
      { "gen_ai.input.messages": json(MESSAGES), "gen_ai.output.messages": json(ANSWER) },
      { inputs: { messages: MESSAGES }, outputs: { messages: ANSWER } },
    ],
  ])("%s has attributes of the span", (name, attributes, expected) => {
    expect(fieldsOf({ events: [{ name, attributes }] })).toMatchObject(expected);
  });

  it("leaves out keys that change prototypes", () => {
    const attributes = JSON.parse('{"__proto__":{"x":1},"a":1}') as object;
    expect(Object.keys(fieldsOf({ events: [{ name: "e", attributes }] }).events[0].kwargs)).toEqual(["a"]);
  });

  it("prefers the attributes of the span to those of events", () => {
    const events = [{ name: "gen_ai.content.prompt", attributes: { "gen_ai.prompt": "event" } }];
    expect(fieldsOf({ attributes: { "gen_ai.prompt": "span" }, events }).inputs).toEqual({ input: "span" });
  });
});

describe("instrumentations", () => {
  it("OpenTelemetry GenAI: a chat with tool calls", () => {
    const call = { type: "tool_call", id: "c1", name: "weather", arguments: { city: "Paris" } };
    const fields = ofAttributes({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "gpt-5",
      "gen_ai.response.model": "gpt-5-2026",
      "gen_ai.request.temperature": 0,
      "gen_ai.usage.input_tokens": 10,
      "gen_ai.usage.output_tokens": 4,
      "gen_ai.input.messages": json(MESSAGES),
      "gen_ai.output.messages": json([{ role: "assistant", parts: [call], finish_reason: "tool_call" }]),
    });
    expect(fields).toMatchObject({
      run_type: "llm",
      inputs: { messages: MESSAGES },
      outputs: { messages: [{ role: "assistant", parts: [call] }] },
      extra: {
        metadata: {
          ls_provider: "openai",
          ls_model_name: "gpt-5",
          response_model: "gpt-5-2026",
          ls_temperature: 0,
          usage_metadata: { input_tokens: 10, output_tokens: 4 },
        },
        invocation_params: { model: "gpt-5", temperature: 0 },
      },
    });
  });

  it("OpenInference: a model and its messages", () => {
    const fields = ofAttributes({
      "openinference.span.kind": "LLM",
      "input.value": '{"messages":[]}',
      "input.mime_type": "application/json",
      "llm.model_name": "claude",
      "llm.input_messages.0.message.role": "user",
      "llm.input_messages.0.message.contents.0.message_content.type": "text",
      "llm.input_messages.0.message.contents.0.message_content.text": "Hi",
      "llm.output_messages.0.message.role": "assistant",
      "llm.output_messages.0.message.content": "Hello",
      "llm.token_count.prompt": 3,
      "llm.token_count.completion": 2,
      "llm.token_count.total": 5,
    });
    expect(fields).toMatchObject({
      run_type: "llm",
      inputs: { messages: [{ role: "user", contents: [{ type: "text", text: "Hi" }] }] },
      outputs: { messages: [{ role: "assistant", content: "Hello" }] },
      extra: { metadata: { usage_metadata: { input_tokens: 3, output_tokens: 2, total_tokens: 5 } } },
    });
  });

  it("Traceloop: a workflow, and a model by its numbered attributes", () => {
    expect(
      ofAttributes({
        "traceloop.span.kind": "workflow",
        "traceloop.entity.name": "joke",
        "traceloop.entity.input": '{"inputs":{"topic":"cats"}}',
        "traceloop.association.properties.session_id": "s1",
      }),
    ).toMatchObject({
      name: "joke",
      run_type: "chain",
      inputs: { inputs: { topic: "cats" } },
      extra: { metadata: { session_id: "s1" } },
    });
    expect(
      ofAttributes({
        "llm.request.type": "chat",
        "gen_ai.system": "OpenAI",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Hi",
        "gen_ai.completion.0.finish_reason": "tool_calls",
        "gen_ai.completion.0.tool_calls.0.name": "f",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"a":1}',
        "llm.usage.total_tokens": 7,
      }),
    ).toMatchObject({
      run_type: "llm",
      inputs: { messages: [{ role: "user", content: "Hi" }] },
      outputs: { messages: [{ finish_reason: "tool_calls", tool_calls: [{ name: "f", arguments: '{"a":1}' }] }] },
      extra: { metadata: { usage_metadata: { total_tokens: 7 } } },
    });
  });

  it("Vercel AI SDK: a model call and a tool call", () => {
    expect(
      ofAttributes({
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": json([{ role: "user", content: [{ type: "text", text: "Hi" }] }]),
        "ai.response.text": "Hello",
        "ai.response.toolCalls": json([{ toolCallId: "c1", toolName: "f", args: "{}" }]),
        "ai.usage.promptTokens": 3,
        "ai.usage.completionTokens": 2,
        "ai.telemetry.metadata.user": "u1",
        "gen_ai.request.model": "gpt-5",
      }),
    ).toMatchObject({
      run_type: "llm",
      inputs: { messages: [{ role: "user" }] },
      outputs: { text: "Hello", tool_calls: [{ toolName: "f" }] },
      extra: { metadata: { user: "u1", usage_metadata: { input_tokens: 3, output_tokens: 2 } } },
    });
    expect(
      ofAttributes({ "gen_ai.tool.name": "f", "ai.toolCall.args": '{"a":1}', "ai.toolCall.result": '"ok"' }),
    ).toMatchObject({ run_type: "tool", inputs: { a: 1 }, outputs: { output: '"ok"' } });
  });
});
