import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { violations } from "../crash/invariants.ts";
import { COUNTS, SEED, searchedDatabases } from "../support/counts.ts";
import { randomOf } from "../support/random.ts";
import { startService, type TestService } from "../support/service.ts";
import { openOn } from "../support/storage.ts";
import { until } from "../support/until.ts";
import { type FuzzRequest, type KnownIds, RequestMaker } from "./requests.ts";

const REQUESTS = COUNTS.fuzz_requests;
const AT_ONCE = 16;

/** Who waits for a run hangs up after this; everybody else must be answered. */
const WAIT_TIMEOUT_MS = 400;
const ANSWER_MS = 20_000;

describe.each(searchedDatabases)("any request on %s", (database) => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService({ inline: false, database, config: "test/graphs/fuzz/langgraph.json" });
  });
  afterAll(() => service.stop());

  it(`is answered without a 5xx and leaves no half-written row (${REQUESTS} requests, seed ${SEED}; FUZZ_REQUESTS and SEED change it)`, async () => {
    const known: KnownIds = { thread_id: [], run_id: [], assistant_id: ["plain", "asks", "fails"], checkpoint_id: [] };
    const maker = new RequestMaker(randomOf(SEED), SEED, known);
    const statuses: Record<string, number> = {};
    const faults: unknown[] = [];
    let sent = 0;
    const client = async () => {
      while (sent < REQUESTS) {
        sent++;
        const request = maker.next();
        const status = await send(service, request, known);
        statuses[status] = (statuses[status] ?? 0) + 1;
        if (status === "hung" || Number(status) >= 500)
          faults.push({ status, ...request, body: request.body?.slice(0, 500) });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    console.log(`${database}: ${JSON.stringify(statuses)}, seed ${SEED}`);
    expect(faults).toEqual([]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    await cancelAll(service);
    const storage = openOn(service.database);
    const broken = await violations(storage.read);
    await storage.close();
    expect(broken).toEqual([]);
  }, 600_000);
});

async function send({ threadmill }: TestService, request: FuzzRequest, known: KnownIds): Promise<string> {
  const { method, path, body, headers, waits } = request;
  const signal = AbortSignal.timeout(waits ? WAIT_TIMEOUT_MS : ANSWER_MS);
  try {
    const response = await threadmill.fetch(new Request(`http://localhost${path}`, { method, body, headers, signal }));
    const text = await Promise.race([response.text(), rejectOn(signal)]);
    learn(text, known);
    return String(response.status);
  } catch {
    return waits ? "hung up" : "hung";
  }
}

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
async function cancelAll(service: TestService): Promise<void> {
  const storage = openOn(service.database);
  await until("no run is active", async () => {
    const active = await storage.read.all(
      storage.read.k.selectFrom("runs").select(["run_id", "thread_id"]).where("status", "in", ["pending", "running"]),
    );
    await Promise.all(
      active.map((run) => service.request("POST", `/threads/${run.thread_id}/runs/${run.run_id}/cancel`)),
    );
    return active.length === 0;
  });
  await storage.close();
}
