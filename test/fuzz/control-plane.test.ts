import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { controlRoutes } from "../../src/control-plane/contract/routes.ts";
import { COUNTS, SEED } from "../support/counts.ts";
import { databases } from "../support/databases.ts";
import { type Random, randomOf } from "../support/random.ts";
import { type Answer, startService, type TestService } from "../support/service.ts";
import { NASTY } from "./requests.ts";
import { bodyOf, queryOf } from "./wire.ts";

const REQUESTS = COUNTS.fuzz_requests / 5;
const AT_ONCE = 8;

type Route = { method: string; path: string };
const ROUTES: Route[] = Object.values(controlRoutes).flatMap((group) => Object.values(group) as Route[]);

/** What answers have named so far. */
interface Ids {
  deployments: string[];
  revisions: string[];
  listeners: string[];
  uploads: string[];
}

const SOURCE_CONFIGS = [
  { repo_url: "https://git.example.com/r.git" },
  { repo_url: "git@example.com:r", deployment_type: "dev_free", build_on_push: true },
  { resource_spec: { cpu: 1, memory_mb: "512", min_scale: 1, max_scale: 3, labels: { a: "b" } } },
  { resource_spec: { cpu: 99 }, listener_config: { k8s_namespace: "a" } },
  { install_command: "", build_command: "make" },
  {},
];
const REVISION_CONFIGS = [
  { repo_ref: "main", langgraph_config_path: "a/langgraph.json" },
  { image_uri: "registry.example.com/a@sha256:00" },
  { image_uri: "" },
  { langgraph_config_path: "../../x" },
  {},
];

/** Fields of any body or query: values that some route takes, and values that none does. */
const FIELDS: Record<string, (ids: Ids) => [good: unknown[], bad: unknown[]]> = {
  name: () => [
    ["a", "Ä b", "c".repeat(255), "d", "e", "f"],
    ["", 1],
  ],
  source: () => [
    ["github", "external_docker", "internal_docker", "internal_source"],
    ["x", null],
  ],
  revision_source: () => [[null, "github", "internal_docker", "internal_source"], ["external_docker"]],
  source_config: ({ listeners }) => [
    [...SOURCE_CONFIGS, ...listeners.map((listener_id) => ({ listener_id, listener_config: { k8s_namespace: "a" } }))],
    [null, [], "x"],
  ],
  source_revision_config: ({ uploads }) => [
    [...REVISION_CONFIGS, ...uploads.map((source_tarball_path) => ({ source_tarball_path }))],
    [null, 5],
  ],
  secrets: () => [
    [[], null, [{ name: "A", value: "b" }], [{ name: "PATH", value: "x" }], [{ name: "ü", value: "\0" }]],
    [{}, [{ name: "A" }], "x"],
  ],
  secret_references: () => [[null, [{ name: "A", secret_name: "b", secret_key: "c" }]], [[{}]]],
  deployment_ids: ({ deployments }) => [deployments, ["x", ""]],
  deployment_id: ({ deployments }) => [deployments, ["x"]],
  revision_id: ({ revisions }) => [revisions, ["x"]],
  name_contains: () => [["a", "", "%", "Ä"], []],
  status: () => [["READY", "CREATING,QUEUED", ""], []],
  remote_reconciled: () => [[true, "no"], ["x"]],
  deployment_type: () => [["dev", "dev_free", "dev_zero"], [""]],
  agent_id: () => [[""], []],
  limit: () => [
    [1, 100],
    [0, "x", 1e300],
  ],
  page_size: () => [[1, 100], [0]],
  offset: () => [
    [0, 1, "1-1", "1767225600000-3"],
    [-1, 1e300, "x", "9999999999999999-1"],
  ],
  cursor: () => [["1-1"], ["x", "", 5]],
  type: () => [["build", "deploy"], ["x"]],
  log_type: () => [["BUILD", "DEPLOY"], ["build"]],
  order: () => [["asc", "desc"], ["up"]],
  level: () => [["INFO", "ERROR"], ["info"]],
  query: () => [["x", "%", "", "\0"], [[]]],
  start_time: () => [
    ["2026-01-31T12:00:00Z", "2026-01-31", 1_767_225_600_000],
    ["x", "2026-13-01", 1e300, [], -1e18],
  ],
  end_time: () => [["2030-01-31T12:00:00+00:00", 5_000_000_000], ["2026-02-30"]],
  force: () => [[true], ["x"]],
  compute_type: () => [["k8s"], ["vm"]],
  compute_id: () => [["a", "b", "c"], [""]],
  compute_config: () => [
    [{}, { k8s_namespaces: ["a"] }],
    [[], { k8s_namespaces: [1] }],
  ],
  version: () => [["1", null], [1]],
};

describe.each(databases)("any request to the control plane on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({
      database,
      config: "test/graphs/fuzz/langgraph.json",
      env: { THREADMILL_RECONCILES: "0" },
    });
  });
  afterAll(() => service.stop());

  it(`is answered without a 5xx (${REQUESTS} requests, seed ${SEED}; FUZZ_REQUESTS and SEED change it)`, async () => {
    const random = randomOf(SEED);
    const values: unknown[] = [...fc.sample(fc.jsonValue({ maxDepth: 4 }), { seed: SEED, numRuns: 1000 }), ...NASTY];
    const ids: Ids = { deployments: [], revisions: [], listeners: [], uploads: [] };
    const statuses: Record<number, number> = {};
    const faults: unknown[] = [];
    let sent = 0;
    const client = async () => {
      while (sent++ < REQUESTS) {
        const { method, path, body } = nextRequest(random, ids, values);
        const answer = await service.request(method, path, body);
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
        if (answer.status >= 500) faults.push({ method, path, body: body?.slice(0, 500), text: answer.text });
        await learn(answer, ids, service, random);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    console.log(`${database}: ${JSON.stringify(statuses)}, seed ${SEED}`);
    expect(faults).toEqual([]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    // Of the rarer ones a few hundred requests may have none.
    const rare = REQUESTS < 2_000 ? [] : ["201", "204"];
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(["200", "400", "404", "422", ...rare]));
  }, 600_000);
});

function nextRequest(random: Random, ids: Ids, values: unknown[]): { method: string; path: string; body?: string } {
  const route = random.pick(ROUTES);
  const method = route.method.toUpperCase();
  // What is deleted takes no changes: mostly something else is.
  if (method === "DELETE" && random.next() < 0.8) return nextRequest(random, ids, values);
  const filled = `${random.pick(["", "/api-host"])}${route.path.replaceAll(/\{(\w+)\}/g, (_, name) => partFor(name, random, ids))}`;
  const fields: Record<string, unknown> = {};
  for (const name of Object.keys(FIELDS)) {
    if (random.next() < (method === "GET" ? 0.7 : 0.1)) continue;
    fields[name] = random.next() < 0.99 ? oneValue(name, random, ids) : random.pick(values);
  }
  if (method === "GET" || method === "DELETE") return { method, path: filled + queryOf(fields) };
  return { method, path: filled, body: bodyOf(fields, random) };
}

function oneValue(name: string, random: Random, ids: Ids): unknown {
  const [good, bad] = FIELDS[name]?.(ids) ?? [[], []];
  if (good.length === 0) return random.pick(bad);
  return random.pick(bad.length === 0 || random.next() < 0.98 ? good : bad);
}

function partFor(name: string, random: Random, ids: Ids): string {
  if (random.next() < 0.05) return encodeURIComponent(random.pick(["x", "\0", "null", "ü".repeat(300)]));
  const known: Record<string, string[]> = {
    deployment_id: ids.deployments,
    revision_id: ids.revisions,
    listener_id: ids.listeners,
  };
  return encodeURIComponent(random.pick([...(known[name] ?? []), randomUUID()]));
}

/** Remembers ids of an answer, a limited number, so that later requests meet them; brings what an upload's URL asks for. */
async function learn({ body, text }: Answer, ids: Ids, service: TestService, random: Random): Promise<void> {
  const found = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, id]) => id as string);
  ids.deployments.push(...found(/"id":"([0-9a-f-]{36})","tenant_id"/g));
  ids.revisions.push(...found(/"id":"([0-9a-f-]{36})","status"/g));
  ids.listeners.push(...found(/"id":"([0-9a-f-]{36})","version"/g));
  ids.uploads.push(...found(/"object_path":"([^"]+)"/g));
  for (const list of Object.values(ids)) if (list.length > 20) list.splice(0, list.length - 20);
  if (!body?.upload_url || random.next() < 0.2) return;
  const { pathname, search } = new URL(body.upload_url);
  expect((await service.request("PUT", pathname + search, "a tarball")).status).toBe(200);
}
