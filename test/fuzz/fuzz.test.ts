import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { violations } from "../crash/invariants.ts";
import { closedService, newCaller, newWorkspace } from "../http/callers.ts";
import type { Scenario } from "../http/scenario.ts";
import { COUNTS, SEED, searchedDatabases } from "../support/counts.ts";
import { randomOf } from "../support/random.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { type FuzzRequest, type KnownIds, RequestMaker } from "./requests.ts";

const REQUESTS = COUNTS.fuzz_requests;
const AT_ONCE = 16;

/** Who waits for a run hangs up after this; everybody else must be answered. */
const WAIT_TIMEOUT_MS = 400;
const ANSWER_MS = 20_000;
/** A limit only for long runs: in CI other suites share the cores, and the first requests are slower. */
const MAX_P99_MS = REQUESTS < 10_000 ? Number.POSITIVE_INFINITY : 200;

/** The share of requests that any of the workspaces sends, with the IDs of one of them. */
const FOREIGN = 0.2;

type Caller = Awaited<ReturnType<typeof newCaller>>;

describe.each(searchedDatabases)("any request on %s", (database) => {
  let api: Scenario;
  /** Of two workspaces, which also ask for what the other one has. */
  let callers: Caller[];
  beforeAll(async () => {
    api = await closedService(database, {}, { inline: false, config: "test/graphs/fuzz/langgraph.json" });
    const caller = async () => newCaller(api, { tenant_id: await newWorkspace(api) });
    callers = [await caller(), await caller()];
  });
  afterAll(() => api.stop());

  it(`is answered without a 5xx, shows no run of another workspace and leaves no half-written row (${REQUESTS} requests, seed ${SEED}; FUZZ_REQUESTS and SEED change it)`, async () => {
    const random = randomOf(SEED);
    const workspaces = callers.map((caller) => {
      const known: KnownIds = {
        thread_id: [],
        run_id: [],
        assistant_id: ["plain", "asks", "fails"],
        checkpoint_id: [],
      };
      return { caller, known, maker: new RequestMaker(random, SEED, known) };
    });
    const statuses: Record<string, number> = {};
    const faults: unknown[] = [];
    const owners = new Map<string, Caller>();
    const durations_ms: number[] = [];
    let sent = 0;
    const client = async (n: number) => {
      const own = workspaces[n % workspaces.length] as (typeof workspaces)[number];
      while (sent < REQUESTS) {
        sent++;
        const request = own.maker.next();
        const { caller, known } = random.next() < FOREIGN ? random.pick(workspaces) : own;
        const sent_at = performance.now();
        const { status, text } = await send(api, request, caller);
        if (!request.waits) durations_ms.push(performance.now() - sent_at);
        statuses[status] = (statuses[status] ?? 0) + 1;
        learn(text, known);
        const isShown = status === "200" && runsIn(text).some((id) => (owners.get(id) ?? caller) !== caller);
        if (status === "200") for (const id of runsIn(text)) owners.set(id, caller);
        if (isShown || status === "hung" || Number(status) >= 500)
          faults.push({ status, isShown, ...request, body: request.body?.slice(0, 500) });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => client(n)));
    const p99_ms = durations_ms.toSorted((a, b) => a - b)[Math.floor(durations_ms.length * 0.99)] ?? 0;
    console.log(`${database}: ${JSON.stringify(statuses)}, p99 ${Math.round(p99_ms)} ms, seed ${SEED}`);
    expect(faults).toEqual([]);
    expect(owners.size).toBeGreaterThan(0);
    expect(p99_ms).toBeLessThan(MAX_P99_MS);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    await cancelAll(api, callers);
    const storage = openOn(api.service.database);
    const broken = await violations(storage.read);
    await storage.close();
    expect(broken).toEqual([]);
  }, 600_000);
});

async function send({ service }: Scenario, request: FuzzRequest, caller: Caller) {
  const { method, path, body, waits } = request;
  const headers = { ...request.headers, ...caller };
  const signal = AbortSignal.timeout(waits ? WAIT_TIMEOUT_MS : ANSWER_MS);
  try {
    const whole = new Request(`http://localhost${path}`, { method, body, headers, signal });
    const response = await service.threadmill.fetch(whole);
    return { status: String(response.status), text: await Promise.race([response.text(), rejectOn(signal)]) };
  } catch {
    return { status: waits ? "hung up" : "hung", text: "" };
  }
}

/** The service makes these IDs. */
const runsIn = (text: string): string[] =>
  [...text.matchAll(/"run_id":"([0-9a-f-]{36})"/g)].map(([, id]) => id as string);

const rejectOn = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

/** Remembers ids of an answer for later requests; a limited number, so that they meet. */
function learn(text: string, known: KnownIds): void {
  for (const name of ["thread_id", "run_id", "assistant_id", "checkpoint_id"] as const) {
    const id = new RegExp(`"${name}":"([0-9a-f-]{36})"`).exec(text)?.[1];
    if (id && !known[name].includes(id)) known[name].push(id);
    if (known[name].length > 40) known[name].splice(3, 10);
  }
}

/** Ends what is delayed or still at work. */
async function cancelAll(api: Scenario, callers: Caller[]): Promise<void> {
  const storage = openOn(api.service.database);
  await until("no run is active", async () => {
    const active = await storage.read.all(
      storage.read.k.selectFrom("runs").select(["run_id", "thread_id"]).where("status", "in", ["pending", "running"]),
    );
    const paths = active.map((run) => `/threads/${run.thread_id}/runs/${run.run_id}/cancel`);
    await Promise.all(callers.flatMap((caller) => paths.map((path) => api.send("POST", path, undefined, caller))));
    return active.length === 0;
  });
  await storage.close();
}
