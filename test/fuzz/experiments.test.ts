import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { experimentRoutes } from "../../src/experiments/contract/routes.ts";
import { experimentRoutesV2 } from "../../src/experiments/contract/v2/routes.ts";
import { experimentOf } from "../experiments/experiment.ts";
import { COUNTS, SEED, searchedDatabases } from "../support/counts.ts";
import { type Random, randomOf } from "../support/random.ts";
import { startService, type TestService } from "../support/service.ts";
import { NASTY } from "./requests.ts";
import { bodyOf, queryOf } from "./wire.ts";

const REQUESTS = COUNTS.fuzz_requests / 5;
const AT_ONCE = 8;

type Route = { method: string; path: string };
const below = (prefix: string, groups: object): Route[] =>
  Object.values(groups)
    .flatMap((group) => Object.values(group) as Route[])
    .map(({ method, path }) => ({ method: method.toUpperCase(), path: `${prefix}${path}` }));
const ROUTES = [...below("/api/v1", experimentRoutes), ...below("/api/v2", { experimentRoutesV2 })];

const FILTERS = [
  'eq(status, "error")',
  "and(eq(feedback_key, 'k'), gt(feedback_score, 0.5))",
  "has(metadata, '{\"a\": 1}')",
  'search("4")',
  "not(exists(error))",
  "eq(",
  "in(name, [])",
];

/** Fields of any body or query, each with values that some route takes. */
const FIELDS: Record<string, (ids: Ids, random: Random) => unknown> = {
  session: (ids) => ids.sessions,
  session_ids: (ids) => ids.sessions,
  session_id: (ids, random) => random.pick(ids.sessions),
  reference_dataset: (ids, random) => random.pick(ids.datasets),
  reference_dataset_id: (ids, random) => random.pick(ids.datasets),
  dataset: (ids, random) => random.pick(ids.datasets),
  dataset_id: (ids, random) => random.pick(ids.datasets),
  project_ids: (ids) => ids.sessions,
  project_id: (ids, random) => random.pick(ids.sessions),
  experiment_ids: (ids) => ids.sessions,
  example_ids: (ids) => ids.examples,
  examples: (ids) => ids.examples,
  source_run_id: (ids, random) => random.pick(ids.runs),
  use_source_run_io: () => true,
  from_version: (_, random) => random.pick(["latest", "prod"]),
  to_version: (_, random) => random.pick(["latest", "2200-01-01"]),
  tag: (_, random) => random.pick(["prod", "\0", "latest"]),
  split_name: (_, random) => random.pick(["base", "train", "\0"]),
  operations: (_, random) => [
    {
      key: random.pick(["dataset_split", "__proto__", "k"]),
      operation: "SET",
      value: random.pick<unknown>(["a", null, 1]),
    },
    { key: random.pick(["dataset_split", "constructor", "k"]), operation: "ARRAY_ADD", values: ["a", "\0"] },
  ],
  inputs_schema_definition: (_, random) =>
    random.pick<unknown>([{ type: "object" }, { $ref: "#" }, { properties: 1 }, { pattern: "(" }, null]),
  baseline_session_id: (ids) => ids.sessions[0],
  comparison_session_ids: (ids) => ids.sessions,
  baseline_experiment_id: (ids, random) => random.pick([...ids.sessions, null]),
  run_id: (ids, random) => random.pick(ids.runs),
  run: (ids, random) => random.pick(ids.runs),
  id: (ids, random) => random.pick<unknown>([...ids.sessions, ...ids.runs, randomUUID(), [randomUUID()]]),
  feedback_key: (_, random) => random.pick(["k", "l", ""]),
  feedback_keys: () => ["k", "l"],
  feedback_config: () => ({ type: "continuous", min: 0, max: 1 }),
  key: (_, random) => random.pick(["k", "l", "new"]),
  score: (_, random) => random.pick<unknown>([0.5, true, null, -1e300]),
  value: (_, random) => random.pick<unknown>(["good", 1, { a: 1 }, null]),
  comment: () => "why",
  filter: (_, random) => random.pick(FILTERS),
  filters: (ids, random) => ({ [ids.sessions[0] as string]: [random.pick(FILTERS)] }),
  select: (_, random) => random.pick<unknown>([["id", "name"], "inputs", []]),
  selects: (_, random) => random.pick<unknown>([["ID", "INPUTS"], ["id"], []]),
  sort_by: (_, random) => random.pick(["name", "start_time", "feedback", "latency_p50", "x"]),
  sort_params: (_, random) => ({ sort_by: random.pick(["latency", "feedback.k", "delta.error", "x"]) }),
  sort: () => ({ by: "latency", order: "ASC" }),
  include_stats: (_, random) => random.pick(["true", "false", "maybe"]),
  metadata: (_, random) => random.pick<unknown>(['{"a":1}', { a: 1 }, "[", "{}"]),
  name: (_, random) => random.pick(["n", "m", ""]),
  inputs: (_, random) => random.pick<unknown>([{ a: 1 }, {}, null, []]),
  outputs: (_, random) => random.pick<unknown>([{ a: 1 }, null]),
  limit: (_, random) => random.pick<unknown>([1, 10, 0, 1000, "5", -1]),
  page_size: (_, random) => random.pick<unknown>([1, 10, 0]),
  offset: (_, random) => random.pick<unknown>([0, 1, 1e9, -1]),
  as_of: (_, random) => random.pick(["latest", "2026-01-01", "2200-01-01T00:00:00Z", "prod"]),
  cursor: (_, random) => random.pick(["x", "W10", "WzEsIngiXQ", "MTA"]),
  preview: (_, random) => random.pick([true, false]),
  order: (_, random) => random.pick(["asc", "desc", "recent", "random", "id"]),
  start_time: (_, random) => random.pick(["2026-01-01T00:00:00", "2026-13-01", "x"]),
  queue_id: (ids, random) => random.pick(ids.queues),
  run_ids: (ids) => ids.runs.slice(0, 3),
  item_ids: (ids, random) => [random.pick(ids.items)],
  items: (ids, random) => [{ item_type: "RUN", run_id: random.pick(ids.runs) }],
  delete_all: (_, random) => random.pick<unknown>([false, "x"]),
  status: (_, random) => random.pick(["needs_my_review", "completed", "archived", "all", "viewed"]),
  rubric_items: () => [{ feedback_key: "k", is_required: true }],
  num_reviewers_per_item: (_, random) => random.pick<unknown>([1, 2, 0]),
  default_dataset: (ids, random) => random.pick<unknown>([...ids.datasets, null, randomUUID()]),
  repo_handle: (_, random) => random.pick(["four", "one", "a b"]),
  manifest: (_, random) => random.pick<unknown>([{ a: 1 }, { a: 2 }, []]),
  parent_commit: (_, random) => random.pick(["latest", "prod", "x"]),
  tag_name: (_, random) => random.pick(["prod", "latest", "next"]),
  commit_id: (_, random) => random.pick(["latest", "prod", "00000000"]),
  like: (_, random) => random.pick([true, false]),
  query: (_, random) => random.pick(["one", "%", ""]),
  split: (_, random) => random.pick<unknown>(["train", ["a", "b"], 1]),
};

interface Ids {
  datasets: string[];
  sessions: string[];
  runs: string[];
  examples: string[];
  feedback: string[];
  queues: string[];
  items: string[];
  prompts: string[];
}

describe.each(searchedDatabases)("any request to the experiments on %s", (database) => {
  let service: TestService;
  let ids: Ids;
  beforeAll(async () => {
    service = await startService({ database, config: "examples/langgraph.json" });
    ids = await someIds(service);
  });
  afterAll(() => service.stop());

  it(`is answered without a 5xx (${REQUESTS} requests, seed ${SEED}; FUZZ_REQUESTS and SEED change it)`, async () => {
    const random = randomOf(SEED);
    const values: unknown[] = [...fc.sample(fc.jsonValue({ maxDepth: 4 }), { seed: SEED, numRuns: 1000 }), ...NASTY];
    const statuses: Record<number, number> = {};
    const faults: unknown[] = [];
    let sent = 0;
    const client = async () => {
      while (sent++ < REQUESTS) {
        const { method, path, body } = nextRequest(random, ids, values);
        const answer = await service.request(method, path, body);
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
        if (answer.status >= 500) faults.push({ method, path, body: body?.slice(0, 500), text: answer.text });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    console.log(`${database}: ${JSON.stringify(statuses)}, seed ${SEED}`);
    expect(faults).toEqual([]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    // Of the rarer ones a few hundred requests may have none.
    const rare = REQUESTS < 2_000 ? [] : ["400"];
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(["200", "404", "422", ...rare]));
  }, 600_000);
});

/** Two experiments on one dataset, another dataset, and everything in them. */
async function someIds({ request }: TestService): Promise<Ids> {
  const scores = (index: number) => [
    { key: "k", score: index / 10, comment: "c" },
    { key: "l", value: "good" },
  ];
  const uploads = [
    experimentOf(10, scores, { dataset_name: "one" }),
    experimentOf(10, scores, { dataset_name: "one" }),
    experimentOf(5, scores, { dataset_name: "two" }, () => randomUUID()),
  ];
  const answers = [];
  for (const upload of uploads)
    answers.push((await request("POST", "/api/v1/datasets/upload-experiment", upload)).body);
  const sessions: string[] = answers.slice(0, 2).map(({ experiment }) => experiment.id);
  const { runs } = (await request("POST", "/api/v1/runs/query", { session: sessions })).body;
  const feedback = (await request("GET", "/api/v1/feedback")).body;
  const queues = [];
  for (const name of ["one", "two", "three"])
    queues.push((await request("POST", "/api/v1/annotation-queues", { name, session_ids: sessions })).body);
  const { items } = (
    await request("GET", `/api/v1/platform/annotation-queues/${queues[0].id}/items?status=needs_my_review`)
  ).body;
  const prompts = ["one", "two", "three"];
  for (const name of prompts) {
    await request("POST", "/api/v1/repos", { repo_handle: name });
    await request("POST", `/api/v1/commits/-/${name}`, { manifest: { name } });
    await request("POST", `/api/v1/repos/-/${name}/tags`, { tag_name: "prod", commit_id: "latest" });
  }
  const idsOf = (records: { id: string }[]) => records.map(({ id }) => id);
  return {
    sessions,
    datasets: [...new Set<string>(answers.map(({ dataset }) => dataset.id))],
    runs: idsOf(runs),
    examples: uploads[0]?.results.map(({ row_id }) => row_id) ?? [],
    feedback: idsOf(feedback),
    queues: idsOf(queues),
    items: idsOf(items),
    prompts,
  };
}

function nextRequest(random: Random, ids: Ids, values: unknown[]): { method: string; path: string; body?: string } {
  const { method, path } = random.pick(ROUTES);
  // What is deleted cannot be asked for any more: mostly something else is.
  const pick = (known: string[]) =>
    random.next() < (method === "DELETE" ? 0.05 : 0.85) ? random.pick(known) : randomUUID();
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (random.next() < 0.05) return encodeURIComponent(random.pick(["x", "%00", "null", "ü".repeat(300)]));
    return pick(knownFor(name, ids));
  });
  const given = Object.keys(FIELDS).filter(() => random.next() < 0.35);
  const fields = Object.fromEntries(
    given.map((name) => [name, random.next() < 0.85 ? FIELDS[name]?.(ids, random) : random.pick(values)]),
  );
  if (method === "GET" || (method === "DELETE" && random.next() < 0.9)) {
    const few = Object.entries(fields).filter(() => random.next() < 0.3);
    return { method, path: filled + queryOf(Object.fromEntries(few)) };
  }
  return { method, path: filled, body: bodyOf(fields, random) };
}

function knownFor(name: string, ids: Ids): string[] {
  const known: Record<string, string[]> = {
    dataset_id: ids.datasets,
    session_id: ids.sessions,
    run_id: ids.runs,
    example_id: ids.examples,
    feedback_id: ids.feedback,
    queue_id: ids.queues,
    queue_run_id: [...ids.items, ...ids.runs],
    item_id: ids.items,
    index: ["0", "1", "-1"],
    owner: ["-"],
    repo: ids.prompts,
    commit: ["latest", "prod", "0000"],
    tag_name: ["prod", "x"],
  };
  return known[name] ?? [randomUUID()];
}
