import { v7 } from "uuid";
import { quantile } from "../load.ts";
import type { Measurement } from "../measurement.ts";
import { type Server, serverOf } from "../target.ts";
import { measureOk, okFigures } from "./ok.ts";
import { startWaiting, stopWaiting } from "./waiting-run.ts";

/** Checkpoints of each run. Two of them are the input's, the others one a step. */
const CHECKPOINTS = 50;
const STEPS = CHECKPOINTS - 2;
/** Runs on the thread before the first one is undone. */
const RUNS_BEFORE = 10;

const ok = okFigures("rollback");
const title = "rollback of a run with 50 checkpoints on a thread with 500";

/**
 * From sending a rollback that waits to its answer. The same thread is used again and again: when rollbacks are exact,
 * it does not change. The peer takes no part: it stops the run and undoes nothing.
 */
export const rollback: Measurement = {
  name: "rollback",
  without: ["floor", "peer"],
  figures: [
    { key: "p50_ms", label: `${title}: p50, ms`, beside: ok.p50 },
    { key: "p99_ms", label: `${title}: p99, ms`, goal: { against: "itself", at_most: 100 }, beside: ok.p99 },
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
    const took_ms: number[] = [];
    for (let time = 0; time < sizes.rollbacks; time++) took_ms.push(await rollBackOnce(server, thread));
    if ((await historyOf(server, thread, RUNS_BEFORE)) !== history)
      throw new Error("The thread's history is another one after the rollbacks.");
    return { ...values, p50_ms: quantile(took_ms, 0.5), p99_ms: quantile(took_ms, 0.99) };
  },
};

async function takeSteps(server: Server, thread: string): Promise<void> {
  const body = {
    assistant_id: "steps",
    input: { count: 0, until: STEPS, wait: false },
    config: { recursion_limit: CHECKPOINTS },
    if_not_exists: "create",
  };
  await server.ask("POST", `/threads/${thread}/runs/wait`, { body });
}

/** Starts a run that takes its steps and waits, and undoes it. @returns how long the undoing took, in ms */
async function rollBackOnce(server: Server, thread: string): Promise<number> {
  const before = await shown(server, thread);
  const run = await startWaiting(server, thread, STEPS);
  if ((await shown(server, thread)) === before) throw new Error("The run that is to be undone has changed nothing.");
  const took_ms = await stopWaiting(server, run, "rollback");
  await run.ended;
  if ((await shown(server, thread)) !== before) throw new Error("A rollback has not brought back what was there.");
  await server.ask("GET", run.path, { status: 404 });
  return took_ms;
}

/** The thread and its state, as they are shown. */
const shown = async (server: Server, thread: string) =>
  `${await server.ask("GET", `/threads/${thread}`)}\n${await server.ask("GET", `/threads/${thread}/state`)}`;

async function historyOf(server: Server, thread: string, runs: number): Promise<string> {
  const history = await server.ask("POST", `/threads/${thread}/history`, { body: { limit: 1_000 } });
  const { length } = JSON.parse(history) as unknown[];
  if (length !== runs * CHECKPOINTS) throw new Error(`There are ${length} checkpoints after ${runs} runs.`);
  return history;
}
