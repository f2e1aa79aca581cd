import { v7 } from "uuid";
import { quantile } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { type Server, serverOf } from "../target.ts";
import { measureOk, okFigures } from "./ok.ts";
import { startWaiting, stopWaiting } from "./waiting-run.ts";

/** Checkpoints per run: two for the input and one per step. */
const CHECKPOINTS = 50;
const STEPS = CHECKPOINTS - 2;
/** Runs on the thread before the first rollback. */
const RUNS_BEFORE = 10;

const ok = okFigures("rollback");
const title = "rollback of a run with 50 checkpoints on a thread with 500";

/**
 * Latency of a rollback with wait=1. All rollbacks use the same thread, which exact rollbacks leave unchanged. The peer is excluded because
 * it stops the run without a rollback.
 */
export const rollback: Measurement = {
  name: "rollback",
  without: ["floor", "peer"],
  on_postgres: true,
  figures: [
    { key: "p50_ms", label: `${title}: p50, ms`, base: ok.p50 },
    { key: "p99_ms", label: `${title}: p99, ms`, goal: { against: "itself", max: 100 }, base: ok.p99 },
    ok.p50,
    ok.p99,
  ],
  async measure(start, sizes) {
    await using target = await start();
    const server = serverOf(target);
    const thread = v7();
    for (let run = 0; run < RUNS_BEFORE; run++) await takeSteps(server, thread);
    const history = await historyOf(server, thread, RUNS_BEFORE);
    await rollBackOnce(server, thread);
    const values = await measureOk(server, sizes);
    const latencies_ms: number[] = [];
    for (let time = 0; time < sizes.rollbacks; time++) latencies_ms.push(await rollBackOnce(server, thread));
    if ((await historyOf(server, thread, RUNS_BEFORE)) !== history)
      throw new Error("The rollbacks have changed the history of the thread.");
    return { ...values, p50_ms: quantile(latencies_ms, 0.5), p99_ms: quantile(latencies_ms, 0.99) };
  },
};

async function takeSteps(server: Server, thread: string): Promise<void> {
  const body = {
    assistant_id: "steps",
    input: { count: 0, until: STEPS, wait: false },
    config: { recursion_limit: CHECKPOINTS },
    if_not_exists: "create",
  };
  await server.send("POST", `/threads/${thread}/runs/wait`, { body });
}

/** Starts a run that executes its steps and waits, then rolls it back. @returns the latency of the rollback, in ms */
async function rollBackOnce(server: Server, thread: string): Promise<number> {
  const before = await snapshotOf(server, thread);
  const run = await startWaiting(server, thread, STEPS);
  if ((await snapshotOf(server, thread)) === before)
    throw new Error("The run has not changed the thread before its rollback.");
  const latency_ms = await stopWaiting(server, run, "rollback");
  await run.ended;
  if ((await snapshotOf(server, thread)) !== before) throw new Error("A rollback has not restored the thread.");
  await server.send("GET", run.path, { status: 404 });
  return latency_ms;
}

/** The thread and its state as the API returns them. */
const snapshotOf = async (server: Server, thread: string) =>
  `${await server.send("GET", `/threads/${thread}`)}\n${await server.send("GET", `/threads/${thread}/state`)}`;

async function historyOf(server: Server, thread: string, runs: number): Promise<string> {
  const history = await server.send("POST", `/threads/${thread}/history`, { body: { limit: 1_000 } });
  const { length } = JSON.parse(history) as unknown[];
  if (length !== runs * CHECKPOINTS) throw new Error(`There are ${length} checkpoints after ${runs} runs.`);
  return history;
}
