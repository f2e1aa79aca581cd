import { randomUUID } from "node:crypto";
import { quantile } from "../load.ts";
import type { Measurement, Values } from "../measurement.ts";
import { type Server, serverOf } from "../target.ts";

const SPANS = 1_000;
const MANY_SPANS = 5_000;
const STATISTICS_ROOTS = 100_000;
const PAYLOAD_CHARS = 1_000_000;
const LIGHT = [
  "name",
  "run_type",
  "status",
  "start_time",
  "end_time",
  "parent_run_id",
  "dotted_order",
  "error",
  "tags",
];

const itself = (max: number) => ({ against: "itself", max }) as const;

/** A project of 1,000,000 roots, one of 100,000 and traces of 1,000 and 5,000 spans, which SQL inserts; then what pages and clients read. */
export const traceReading: Measurement = {
  name: "trace-reading",
  without: ["floor", "peer"],
  on_postgres: true,
  figures: [
    { key: "newest_p95_ms", label: "traces: the 100 newest of 1,000,000 roots, p95, ms", goal: itself(100) },
    { key: "thread_p95_ms", label: "... of a thread, p95, ms", goal: itself(30) },
    { key: "name_p95_ms", label: "... with a name, p95, ms", goal: itself(30) },
    { key: "failed_p95_ms", label: "... that failed, p95, ms", goal: itself(30) },
    { key: "dirty_p95_ms", label: "... statistics of 100,000 roots after a change, p95, ms", goal: itself(250) },
    { key: "clean_p95_ms", label: "... without a change, p95, ms", goal: itself(5) },
    { key: "filtered_p95_ms", label: "... of POST /runs/stats, p95, ms" },
    { key: "threads_p95_ms", label: "... 20 of their 10,000 threads, p95, ms" },
    { key: "tree_p95_ms", label: "... a trace of 1,000 spans without payloads, p95, ms", goal: itself(50) },
    { key: "large_tree_p95_ms", label: "... one of 5,000 spans, as the page reads it, p95, ms", goal: itself(200) },
    { key: "payload_p95_ms", label: "... a run with 1 MB of payload, p95, ms", goal: itself(30) },
  ],
  async measure(start, { trace_roots, experiment_calls }) {
    await using target = await start();
    const server = serverOf(target);
    const post = (path: string, body: object) => server.send("POST", path, { body });
    const [large, medium, small, other] = [
      await createSession(server),
      await createSession(server),
      await createSession(server),
      await createSession(server),
    ];
    await insertRoots(server, large, trace_roots);
    await insertRoots(server, medium, Math.min(trace_roots, STATISTICS_ROOTS));
    const trace_id = await insertTrace(server, small, SPANS);
    const large_trace_id = await insertTrace(server, other, MANY_SPANS);
    const big = randomUUID();
    const ingest = (body: object) => server.send("POST", "/api/v1/runs", { body, status: 202 });
    await ingest(run(big, { inputs: { text: "x".repeat(PAYLOAD_CHARS) }, session_id: small.id }));

    const roots = (filter?: string) => () =>
      post("/api/v1/runs/query", { session: [large.id], is_root: true, filter, select: LIGHT });
    const tree = { project_ids: [small.id], trace_id, page_size: SPANS, selects: LIGHT.map(capital) };
    const statistics = () => server.send("GET", `/api/v1/sessions/${medium.id}`);
    const change = () => ingest(run(randomUUID(), { session_id: medium.id }));
    const p95 = (call: () => Promise<unknown>, before?: () => Promise<unknown>) =>
      p95Of(experiment_calls, call, before);
    const values: Values = {};
    values.newest_p95_ms = await p95(roots());
    values.thread_p95_ms = await p95(roots('eq(thread_id, "t77")'));
    values.name_p95_ms = await p95(roots('eq(name, "agent-7")'));
    values.failed_p95_ms = await p95(roots('eq(status, "error")'));
    values.dirty_p95_ms = await p95(statistics, change);
    values.clean_p95_ms = await p95(statistics);
    values.filtered_p95_ms = await p95(() => post("/api/v1/runs/stats", { session: [medium.id], is_root: true }));
    values.threads_p95_ms = await p95(() => post("/api/v2/threads/query", { project_id: medium.id, page_size: 20 }));
    values.tree_p95_ms = await p95(() => post("/api/v2/runs/query", tree));
    values.large_tree_p95_ms = await p95(() => server.send("GET", `/app/api/traces/${large_trace_id}`));
    values.payload_p95_ms = await p95(() => server.send("GET", `/api/v1/runs/${big}`));
    return values;
  },
};

const capital = (field: string) => (field === "parent_run_id" ? "PARENT_RUN_IDS" : field.toUpperCase());

/** @param before called before each call, and not measured */
async function p95Of(calls: number, call: () => Promise<unknown>, before?: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n <= calls; n++) {
    await before?.();
    const started_at = performance.now();
    await call();
    times.push(performance.now() - started_at);
  }
  // The first call fills caches.
  return quantile(times.slice(1), 0.95);
}

const run = (id: string, fields: object) => {
  const time = new Date().toISOString();
  return { id, name: "run", run_type: "chain", start_time: time, end_time: time, ...fields };
};

interface Session {
  id: string;
  tenant_id: string;
}

export const createSession = async (server: Server): Promise<Session> =>
  JSON.parse(await server.send("POST", "/api/v1/sessions", { body: { name: randomUUID() } }));

const COLUMNS = `insert into trace_runs (tenant_id, run_id, experiment_no, trace_id, parent_run_id, dotted_order, is_root,
  is_provisional, name, run_type, start_us, end_us, error, tags, metadata, thread_id, inputs_preview, outputs_preview,
  tree_prompt_tokens, tree_completion_tokens, tree_total_tokens, tree_prompt_cost, tree_completion_cost, tree_total_cost,
  tree_first_token_us, merge_state)`;
const numbers = (count: number) =>
  `with recursive c(i) as (select cast(0 as bigint) union all select i + 1 from c where i < ${count - 1})`;
const sessionNo = ({ id }: Session) => `(select experiment_no from experiments where experiment_id = '${id}')`;
const text = (value: string) => `cast(${value} as text)`;
/** An id with the number in its last 12 digits. */
const idOf = (prefix: string) => `'${prefix}' || substr(${text("1000000000000 + i")}, 2)`;
const PREVIEW = `'{"messages":"${"What is the capital of the country with the longest coastline? ".repeat(3)}"}'`;

/** Roots of one second each, ten to a thread. */
async function insertRoots(server: Server, session: Session, count: number): Promise<void> {
  const id = idOf(`${session.id.slice(0, 23)}-`);
  const start = `${Date.now() * 1000} - i * 1000000`;
  await server.execute(`${COLUMNS} ${numbers(count)}
    select '${session.tenant_id}', ${id}, ${sessionNo(session)}, ${id}, null, '20260131T120000000000Z' || ${id}, 1, 0,
      'agent-' || ${text("i % 20")}, 'chain', ${start}, ${start} + 1000000 + (i % 977) * 1000,
      case when i % 1000 = 7 then 'broken' end, '["a"]', '{"ls_model_name":"gpt-4o"}', 't' || ${text("i / 10")},
      ${PREVIEW}, ${PREVIEW}, 100, 20, 120, 0.001, 0.002, 0.003, ${start} + 300000, 3 from c`);
}

/** A root and the other spans below it. */
export async function insertTrace(server: Server, session: Session, spans: number): Promise<string> {
  const prefix = `${session.id.slice(0, 23)}-`;
  const root = `${prefix}${"0".repeat(12)}`;
  const start = `${Date.now() * 1000} + i * 1000`;
  const place = `case when i = 0 then '' else '.20260131T120000000000Z' || ${idOf(prefix)} end`;
  await server.execute(`${COLUMNS} ${numbers(spans)}
    select '${session.tenant_id}', ${idOf(prefix)}, ${sessionNo(session)}, '${root}',
      case when i > 0 then '${root}' end, '20260131T120000000000Z${root}' || ${place}, case when i = 0 then 1 else 0 end, 0,
      'step', case when i % 3 = 0 then 'llm' else 'chain' end, ${start}, ${start} + 1000, null, null,
      '{"langgraph_node":"agent"}', null, ${PREVIEW}, ${PREVIEW}, 100, 20, 120, 0.001, 0.002, 0.003, null, 3 from c`);
  return root;
}
