import { randomBytes, randomUUID } from "node:crypto";
import { zstdCompressSync } from "node:zlib";
import { JsonTraceSerializer, ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { v7 } from "uuid";
import { drive, quantile } from "../load.ts";
import type { Measurement, Values } from "../measurement.ts";
import { watchOk } from "../ok-watch.ts";
import { type Server, serverOf, type Target } from "../target.ts";
import { watchMemory } from "../watch-memory.ts";

type Body = Uint8Array<ArrayBuffer>;

const CLIENTS = 8;
const IDLE_BODIES = 100;
const WARM_UP_RUNS = 100;
const RUNS_PER_TRACE = 10;
const RUNS_PER_BODY = 100;
/** As the batch processor of OpenTelemetry. */
const SPANS_PER_REQUEST = 512;
const BOUNDARY = "bench-boundary";
const TEXT = "What is the capital of the country with the longest coastline? ".repeat(14);

/** Eight clients send bodies of 100 runs as the official Python client does, with 2 KB of payloads each, while graphs run. */
export const traces: Measurement = {
  name: "traces",
  without: ["floor", "peer"],
  on_postgres: true,
  figures: [
    {
      key: "traces_per_s",
      label: "traces: runs ingested per second",
      goal: { against: "itself", min: 2_000 },
    },
    { key: "traces_body_p99_ms", label: "... a body of 100 runs, p99, ms", goal: { against: "itself", max: 8_000 } },
    {
      key: "traces_idle_body_p99_ms",
      label: "... a body of 100 runs from one client, p99, ms",
      goal: { against: "itself", max: 250 },
    },
    {
      key: "traces_ok_p99_ms",
      label: "... GET /ok meanwhile, p99, ms",
      goal: { against: "itself", max: 100 },
    },
    { key: "traces_ok_max_ms", label: "... its slowest, ms", goal: { against: "itself", max: 100 } },
    { key: "traces_list_ms", label: "... the 100 newest roots, ms" },
    { key: "traces_lost", label: "... runs lost", goal: { against: "itself", max: 0 } },
    { key: "traces_doubled", label: "... runs doubled", goal: { against: "itself", max: 0 } },
    { key: "traces_run_p99_ms", label: "... runs of a graph meanwhile, one after another, p99, ms" },
    { key: "traces_run_max_ms", label: "... their slowest, ms", goal: { against: "itself", max: 100 } },
    {
      key: "spans_per_s",
      label: "OTLP in protobuf, 512 spans a request: spans per second",
      goal: { against: "itself", min: 2_500 },
    },
    { key: "json_spans_per_s", label: "... in JSON: spans per second", goal: { against: "itself", min: 2_500 } },
    {
      key: "large_traces_rss_mb",
      label: "8 bodies of 20 MiB: growth of the process, MB",
      goal: { against: "itself", max: 300 },
    },
  ],
  async measure(start, { trace_bodies, span_requests, large_trace_bodies }) {
    await using target = await start();
    const server = serverOf(target);
    const bodies = Array.from({ length: trace_bodies }, () => body());
    const idle_bodies = Array.from({ length: IDLE_BODIES }, () => body());
    await send(server, body());
    const idle = await drive(1, { calls: IDLE_BODIES }, () => send(server, idle_bodies.pop() as Body));
    return {
      traces_idle_body_p99_ms: idle.p99_ms,
      ...(await measureLarge(target, server, large_trace_bodies)),
      ...(await ingest(target, server, bodies)),
      ...(await list(server)),
      ...(await count(server, (trace_bodies + IDLE_BODIES + 1) * RUNS_PER_BODY)),
      spans_per_s: await measureSpans(server, span_requests, ["application/x-protobuf", ProtobufTraceSerializer]),
      json_spans_per_s: await measureSpans(server, span_requests, ["application/json", JsonTraceSerializer]),
    };
  },
};

async function ingest(target: Target, server: Server, bodies: Body[]): Promise<Values> {
  const runs_ms: number[] = [];
  const run = async () => {
    const sent_at = performance.now();
    await target.run("step", { text: "hello" }, v7());
    runs_ms.push(performance.now() - sent_at);
  };
  for (let n = 0; n < WARM_UP_RUNS; n++) await run();
  runs_ms.length = 0;
  const watch = await watchOk(server.port);
  const times: number[] = [];
  const started_at = performance.now();
  const count = bodies.length;
  const work = async () => {
    for (let next = bodies.pop(); next; next = bodies.pop()) {
      const sent_at = performance.now();
      await send(server, next);
      times.push(performance.now() - sent_at);
    }
  };
  const runGraphs = async () => {
    while (bodies.length > 0) await run();
  };
  await Promise.all([...Array.from({ length: CLIENTS }, work), runGraphs()]);
  const seconds = (performance.now() - started_at) / 1_000;
  const ok = await watch.stop();
  return {
    traces_per_s: (count * RUNS_PER_BODY) / seconds,
    traces_body_p99_ms: quantile(times, 0.99),
    traces_ok_p99_ms: ok.p99_ms,
    traces_ok_max_ms: ok.max_ms,
    traces_run_p99_ms: quantile(runs_ms, 0.99),
    traces_run_max_ms: Math.max(...runs_ms),
  };
}

async function list(server: Server): Promise<Values> {
  const sessions = JSON.parse(await server.send("GET", "/api/v1/sessions?name=bench")) as { id: string }[];
  const body = { session: sessions.map(({ id }) => id), is_root: true, select: ["name", "inputs"] };
  const started_at = performance.now();
  await server.send("POST", "/api/v1/runs/query", { body });
  return { traces_list_ms: performance.now() - started_at };
}

/** Every run has an id of its own: more runs than were sent have been stored twice. */
async function count(server: Server, sent: number): Promise<Values> {
  const sessions = JSON.parse(await server.send("GET", "/api/v1/sessions?name=bench")) as { id: string }[];
  const body = { session: sessions.map(({ id }) => id) };
  const { run_count } = JSON.parse(await server.send("POST", "/api/v1/runs/stats", { body }));
  return { traces_lost: Math.max(0, sent - run_count), traces_doubled: Math.max(0, run_count - sent) };
}

/** Bodies of 100 runs with 200 KB each, at the same time. */
async function measureLarge(target: Target, server: Server, bodies: number): Promise<Values> {
  const text = TEXT.repeat(220);
  const large = Array.from({ length: bodies }, () =>
    body({ session_name: "large", inputs: { text } }, (parts) => Buffer.from(parts)),
  );
  const before_mb = target.usage()?.rss_mb;
  const memory = watchMemory(target);
  await Promise.all(large.map((each) => send(server, each, "identity")));
  const after_mb = memory.stop();
  return before_mb === undefined ? {} : { large_traces_rss_mb: Math.max(before_mb, ...after_mb) - before_mb };
}

type Span = Parameters<typeof JsonTraceSerializer.serializeRequest>[0][number];

/** @returns spans per second of model calls, which two official exporters encode and send */
async function measureSpans(
  { port }: Server,
  requests: number,
  [type, serializer]: [string, typeof JsonTraceSerializer],
): Promise<number> {
  const bodies = Array.from({ length: requests }, () => {
    const root = span();
    const spans = [root, ...Array.from({ length: SPANS_PER_REQUEST - 1 }, () => span(root))];
    return new Uint8Array(serializer.serializeRequest(spans) as Uint8Array);
  });
  const headers = { "content-type": type, "langsmith-project": "spans" };
  const started_at = performance.now();
  const work = async () => {
    for (let next = bodies.pop(); next; next = bodies.pop()) {
      const response = await fetch(`http://127.0.0.1:${port}/otel/v1/traces`, { method: "POST", body: next, headers });
      if (response.status !== 200) throw new Error(`The server answered ${response.status}: ${await response.text()}`);
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: 2 }, work));
  return (requests * SPANS_PER_REQUEST) / ((performance.now() - started_at) / 1_000);
}

const resource = { attributes: { "service.name": "bench" } } as unknown as Span["resource"];
const instrumentationScope = { name: "bench" };
const attributes = {
  "gen_ai.operation.name": "chat",
  "gen_ai.provider.name": "openai",
  "gen_ai.request.model": "gpt-4o",
  "gen_ai.input.messages": JSON.stringify([{ role: "user", parts: [{ type: "text", content: TEXT }] }]),
};

/** A model call below `parent`, or the root of a trace. */
function span(parent?: Span): Span {
  const id = (bytes: number) => randomBytes(bytes).toString("hex");
  const root = parent?.spanContext();
  const context = { traceId: root?.traceId ?? id(16), spanId: id(8), traceFlags: 1 };
  return {
    name: parent ? "chat" : "agent",
    kind: 0,
    spanContext: () => context,
    parentSpanContext: root,
    startTime: [1769860800, 0],
    endTime: [1769860801, 0],
    duration: [1, 0],
    ended: true,
    status: { code: 0 },
    attributes: parent ? attributes : {},
    events: [],
    links: [],
    resource,
    instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  } as Span;
}

async function send({ port }: Server, body: Body, encoding = "zstd"): Promise<void> {
  const headers = { "content-type": `multipart/form-data; boundary=${BOUNDARY}`, "content-encoding": encoding };
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/runs/multipart`, { method: "POST", body, headers });
  if (response.status !== 202) throw new Error(`The server answered ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
}

/** Ten traces of a root and nine models, as one multipart body. */
function body(
  more: { session_name?: string; inputs?: object } = {},
  encode = zstdCompressSync as (text: string) => Buffer,
): Body {
  const parts: string[] = [];
  for (let trace = 0; trace < RUNS_PER_BODY / RUNS_PER_TRACE; trace++) {
    const root = randomUUID();
    const time = new Date().toISOString().replace("Z", "000Z");
    const segment = (id: string) => `${time.replaceAll(/[-:.]/g, "")}${id}`;
    for (let n = 0; n < RUNS_PER_TRACE; n++) {
      const id = n === 0 ? root : randomUUID();
      const place = n === 0 ? segment(id) : `${segment(root)}.${segment(id)}`;
      const main = {
        id,
        trace_id: root,
        dotted_order: place,
        name: n === 0 ? "agent" : "model",
        run_type: n === 0 ? "chain" : "llm",
        start_time: time,
        end_time: time,
        session_name: more.session_name ?? "bench",
      };
      const usage_metadata = { input_tokens: 100, output_tokens: 20, total_tokens: 120 };
      const fields = {
        inputs: more.inputs ?? { messages: [{ role: "user", content: TEXT }] },
        outputs: { messages: [{ role: "assistant", content: TEXT }], ...(n > 0 && { usage_metadata }) },
        extra: { metadata: { ls_provider: "openai", ls_model_name: "gpt-4o" } },
      };
      parts.push(part(`post.${id}`, main));
      for (const [name, value] of Object.entries(fields)) parts.push(part(`post.${id}.${name}`, value));
    }
  }
  return new Uint8Array(encode(`${parts.join("")}--${BOUNDARY}--\r\n`));
}

const part = (name: string, value: object): string =>
  `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\ncontent-type: application/json\r\n\r\n${JSON.stringify(value)}\r\n`;
