import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { authServiceRoutes } from "../../src/access/contract/routes.ts";
import { COUNTS, SEED } from "../support/counts.ts";
import { databases } from "../support/databases.ts";
import { type Random, randomOf } from "../support/random.ts";
import { startService, type TestService } from "../support/service.ts";
import { NASTY } from "./requests.ts";
import { bodyOf, queryOf } from "./wire.ts";

const REQUESTS = COUNTS.fuzz_requests / 5;
const AT_ONCE = 8;

type Route = { method: string; path: string };
const ROUTES = Object.values(authServiceRoutes).flatMap((group) => Object.values(group) as Route[]);

const PROVIDERS = ["github", "google", "a/b", "ü", "__proto__"];
const AGENTS = ["agent", "other", "a/b"];

/** Nobody listens there: whoever connects is told so at once. */
const URL = "http://127.0.0.1:1/x";
const BAD_URLS = ["https://localhost:1/y", "https://10.0.0.1/", "ftp://x", "http://[", "", null];

/** Fields of any body or query: values that some route takes, and values that none does. */
const FIELDS: Record<string, (ids: Ids) => [good: unknown[], bad: unknown[]]> = {
  provider_id: () => [PROVIDERS, ["", null]],
  provider: () => [PROVIDERS, ["", null]],
  provider_ids: () => [
    [PROVIDERS, []],
    ["x", [1]],
  ],
  name: () => [["n"], [""]],
  client_id: () => [["c"], [1]],
  client_secret: () => [["s", "", null], [[]]],
  auth_url: () => [[URL], BAD_URLS],
  token_url: () => [[URL], BAD_URLS],
  revocation_url: () => [[URL, null], BAD_URLS],
  issuer: () => [[URL, null], BAD_URLS],
  mcp_server_url: () => [[URL], BAD_URLS],
  uses_pkce: () => [
    [true, "yes"],
    [2, "maybe"],
  ],
  code_challenge_method: () => [["S256", "plain"], [1]],
  provider_type: () => [["slack", "microsoft", null], ["x"]],
  token_endpoint_auth_method: () => [
    ["none", "client_secret_basic"],
    ["x", null],
  ],
  authorization_params: () => [
    [{ a: "b" }, {}],
    [{ a: 1 }, []],
  ],
  allowed_redirect_uris: () => [[["https://a.example.com/"], []], [["x"]]],
  default_redirect_uri: () => [["https://a.example.com/", null], ["x"]],
  access_token: () => [
    ["t", "", "x".repeat(1000)],
    [5, null],
  ],
  refresh_token: () => [[null, "r"], [1]],
  expires_in_seconds: () => [
    [3600, 0, "60", null],
    [-1, 1e300, 1.5],
  ],
  scopes: () => [
    [["a", "b"], [], ["a"]],
    ["a", [1]],
  ],
  metadata: () => [[{ a: 1 }, null], [[]]],
  is_default: () => [
    [true, false, "1"],
    [null, 5],
  ],
  provider_account_label: () => [["work", "", null], [5]],
  oauth_token_id: ({ tokens }) => [tokens, ["x", null]],
  token_id: ({ tokens }) => [[...tokens, null, null], ["x"]],
  agent_id: () => [[...AGENTS, null], [1]],
  force_new: () => [[true, false], ["x"]],
  ls_user_id: () => [["bob", null], [1]],
  state: ({ flows }) => [[...flows.map((id) => `${id}.x`), "x"], [""]],
  code: () => [["c", ""], [1]],
  error: () => [["access_denied"], [1]],
  installation_id: () => [[1], ["x"]],
  setup_action: () => [["update", "install"], [1]],
  limit: () => [
    [1, 200],
    [0, "x", ""],
  ],
  timeout: () => [[0, -1], ["x"]],
};

function oneValue(name: string, random: Random, ids: Ids): unknown {
  const [good, bad] = FIELDS[name]?.(ids) ?? [[], []];
  return random.pick(good.length > 0 && random.next() < 0.97 ? good : bad);
}

/** What answers have named so far. */
interface Ids {
  tokens: string[];
  connections: string[];
  flows: string[];
}

describe.each(databases)("any request to the Auth Service on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    // A provider that cannot be reached is given up soon.
    const env = { THREADMILL_ALLOW_LOOPBACK_OAUTH: "1", THREADMILL_OAUTH_TIMEOUT: "300ms" };
    service = await startService({ database, config: "test/graphs/fuzz/langgraph.json", env });
  });
  afterAll(() => service.stop());

  it(`is answered without a 5xx (${REQUESTS} requests, seed ${SEED}; FUZZ_REQUESTS and SEED change it)`, async () => {
    const random = randomOf(SEED);
    const values: unknown[] = [...fc.sample(fc.jsonValue({ maxDepth: 4 }), { seed: SEED, numRuns: 1000 }), ...NASTY];
    const ids: Ids = { tokens: [], connections: [], flows: [] };
    const statuses: Record<number, number> = {};
    const faults: unknown[] = [];
    let sent = 0;
    const client = async () => {
      while (sent++ < REQUESTS) {
        const { method, path, body } = nextRequest(random, ids, values);
        const answer = await service.request(method, path, body);
        statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
        if (isFault(answer)) faults.push({ method, path, body: body?.slice(0, 500), text: answer.text });
        learn(answer.text, ids);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    console.log(`${database}: ${JSON.stringify(statuses)}, seed ${SEED}`);
    expect(faults).toEqual([]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    // Of the rarer ones a few hundred requests may have none.
    const rare = REQUESTS < 2_000 ? [] : ["201", "204", "409"];
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(["200", "404", "422", ...rare]));
  }, 600_000);
});

/** That a token's provider does not answer right now is the one thing that the service says of somebody else. */
const isFault = ({ status, text }: { status: number; text: string }): boolean =>
  status >= 500 && !(status === 503 && text.includes("could not be refreshed"));

function nextRequest(random: Random, ids: Ids, values: unknown[]): { method: string; path: string; body?: string } {
  const route = nextRoute(random);
  const method = route.method.toUpperCase();
  const filled = `${random.pick(["", "/api-host"])}${route.path.replaceAll(/\{(\w+)\}/g, (_, name) => partFor(name, random, ids))}`;
  const given = Object.keys(FIELDS).filter(() => random.next() < 0.95);
  const fields = Object.fromEntries(
    given.map((name) => [name, random.next() < 0.99 ? oneValue(name, random, ids) : random.pick(values)]),
  );
  // A wait without a time limit would take its 30 s.
  if (route.path.includes("/wait/")) fields.timeout = oneValue("timeout", random, ids);
  if (method === "GET" || (method === "DELETE" && random.next() < 0.9))
    return { method, path: filled + queryOf(fields) };
  return { method, path: filled, body: bodyOf(fields, random) };
}

/** Mostly something else than what takes everything away that others need. */
function nextRoute(random: Random): Route {
  const route = random.pick(ROUTES);
  const takesAway = route.method === "delete" && /(providers\/\{provider_id\}|tokens)$/.test(route.path);
  return takesAway && random.next() < 0.9 ? nextRoute(random) : route;
}

function partFor(name: string, random: Random, ids: Ids): string {
  if (random.next() < 0.05) return encodeURIComponent(random.pick(["x", "\0", "null", "ü".repeat(300)]));
  const known: Record<string, string[]> = {
    provider_id: PROVIDERS,
    agent_id: AGENTS,
    token_id: ids.tokens,
    connection_id: ids.connections,
    auth_id: ids.flows,
  };
  return encodeURIComponent(random.pick([...(known[name] ?? []), randomUUID()]));
}

/** Remembers ids of an answer; a limited number, so that later requests meet them. */
function learn(text: string, ids: Ids): void {
  const found = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, id]) => id as string);
  ids.tokens.push(...found(/"(?:token_id|oauth_token_id)":"([0-9a-f-]{36})"/g));
  ids.connections.push(...found(/"id":"([0-9a-f-]{36})","agent_id"/g));
  ids.flows.push(...found(/"auth_id":"([0-9a-f-]{36})"/g));
  for (const list of Object.values(ids)) if (list.length > 20) list.splice(0, list.length - 20);
}
