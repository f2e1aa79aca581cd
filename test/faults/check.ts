/**
 * Reads a history of test/faults/play.ts and says which gates hold. It knows nothing of the service.
 *
 * Usage: node test/faults/check.ts HISTORY.jsonl [--times]   (--times: times are gates, too; for a quiet machine)
 */
import { readFileSync } from "node:fs";
import { type Entry, type Fault, STEPS } from "./history.ts";

type Of<K extends Entry["kind"]> = Extract<Entry, { kind: K }>;

const [file, times] = process.argv.slice(2);
const entries = readFileSync(file as string, "utf8")
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line) as Entry)
  .sort((a, b) => a.t - b.t);
const of = <K extends Entry["kind"]>(kind: K) => entries.filter((entry): entry is Of<K> => entry.kind === kind);

const [begin] = of("begin");
const lease_ms = begin?.lease_ms ?? 0;
const rows = new Map(of("row").map((row) => [row.run_id, row]));
const accepted = of("accepted");
const received = new Map(of("received").map((entry) => [entry.run_id, entry]));
const stepsOf = Map.groupBy(of("step"), ({ run_id }) => run_id);
const faults = of("fault");
const overs = of("over");
const ports = new Set(of("probe").map(({ port }) => port));

const isTick = ({ run_id }: { run_id: string }) => rows.get(run_id)?.graph_id === "ticks";
const ALL = JSON.stringify(Array.from({ length: STEPS }, (_, i) => i));

/** A run that its process may have lost: it went on in another one. */
function recoveries(fault: Fault): number[] {
  const found: number[] = [];
  for (const { t, pid } of faults.filter((one) => one.fault === fault)) {
    for (const steps of stepsOf.values()) {
      if (steps.findLast((step) => step.t <= t)?.pid !== pid) continue;
      const next = steps.find((step) => step.t > t && step.pid !== pid);
      // What it had ended, or went on with after the fault, is no recovery.
      if (next && !steps.some((step) => step.t > t && step.t < next.t && step.pid === pid)) found.push(next.t - t);
    }
  }
  return found.sort((a, b) => a - b);
}

const percentile = (sorted: number[], p: number): number =>
  sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * p) - 1)] ?? Number.NaN;

/** Steps that began more often than the losses of a run explain. The first claim has epoch 1, and each loss with the next claim adds 2. */
const unexplained = [...stepsOf].filter(([run_id, steps]) => {
  const repeated = steps.length - new Set(steps.map(({ step }) => step)).size;
  return repeated > ((rows.get(run_id)?.epoch ?? 1) - 1) / 2;
});

/** From the moment that Postgres takes writes to the first write that each process answers. */
function returns(fault: Fault): number[] {
  const found: number[] = [];
  for (const { t } of overs.filter((one) => one.fault === fault)) {
    const end = faults.find((one) => one.t > t)?.t ?? Number.POSITIVE_INFINITY;
    const writes = of("probe").filter((one) => one.fault === fault && one.status === 200 && one.t >= t && one.t < end);
    for (const port of ports) found.push((writes.find((one) => one.port === port)?.t ?? Number.POSITIVE_INFINITY) - t);
  }
  return found.sort((a, b) => a - b);
}

/** Pairs of runs of which the one that was accepted later committed a checkpoint before the last one of the other. */
const pairs = accepted.flatMap(({ run_id, after }) => {
  const [earlier, later] = [rows.get(after ?? ""), rows.get(run_id)];
  return earlier && later ? [{ earlier, later }] : [];
});
const reversed = pairs.filter(({ earlier, later }) => !((earlier.last ?? "") < (later.first ?? "")));

const probes = (fault: Fault, path: string) => of("probe").filter((one) => one.fault === fault && one.path === path);
const endedOf = (runs: { run_id: string }[], status: string) =>
  runs.filter(({ run_id }) => rows.get(run_id)?.status === status);
const during = (fault: Fault) => accepted.filter((run) => run.fault === fault && isTick(run));
const notSuccessful = (runs: { run_id: string }[]) => runs.length - endedOf(runs, "success").length;
const frozen = recoveries("frozen");
const killed = recoveries("killed");
const swallowed = recoveries("swallowed");
const restarted = returns("restarted");
const failed_over = returns("failed over");
const silent = probes("swallowed", "/threads/search");
const slow = of("probe").filter(({ fault }) => fault === "slow network");
const ticks = accepted.filter(isTick);
const poison = [...rows.values()].filter(({ graph_id }) => ["exits", "eats", "blocks"].includes(graph_id));
// The last crash is not stored, because it ends the run.
const survived = poison.filter(({ status, crashes }) => status !== "error" || crashes !== 2);
const without_database = [...probes("restarted", "/threads"), ...probes("failed over", "/threads")];

interface Gate {
  name: string;
  measured: number;
  limit: number;
  of?: number;
  isTime?: boolean;
}

const gates: Gate[] = [
  {
    name: "runs accepted and not there",
    measured: accepted.filter(({ run_id }) => !rows.has(run_id)).length,
    limit: 0,
  },
  { name: "runs of good graphs that did not succeed", measured: notSuccessful(ticks), limit: 0, of: ticks.length },
  {
    name: "outputs with a step lost or twice",
    measured: ticks.filter(({ run_id }) => JSON.stringify(received.get(run_id)?.steps) !== ALL).length,
    limit: 0,
    of: ticks.length,
  },
  {
    name: "runs with a step that began again without a loss",
    measured: unexplained.length,
    limit: 0,
    of: stepsOf.size,
  },
  { name: "pairs of runs of a thread that are out of order", measured: reversed.length, limit: 0, of: pairs.length },
  { name: "rules that the rows break", measured: of("violation").length, limit: 0 },
  {
    name: "frozen: recovery, p50 (ms)",
    measured: percentile(frozen, 0.5),
    limit: lease_ms + 1_000,
    of: frozen.length,
    isTime: true,
  },
  {
    name: "frozen: recovery, p99 (ms)",
    measured: percentile(frozen, 0.99),
    limit: lease_ms + 1_000,
    of: frozen.length,
    isTime: true,
  },
  { name: "killed: no run continued in another process", measured: killed.length > 0 ? 0 : 1, limit: 0 },
  {
    name: "killed: recovery, p50 (ms)",
    measured: percentile(killed, 0.5),
    limit: 1_000,
    of: killed.length,
    isTime: true,
  },
  {
    name: "killed: recovery, p99 (ms)",
    measured: percentile(killed, 0.99),
    limit: 3_000,
    of: killed.length,
    isTime: true,
  },
  {
    name: "swallowed: recovery, p99 (ms)",
    measured: percentile(swallowed, 0.99),
    limit: lease_ms + 1_000,
    of: swallowed.length,
    isTime: true,
  },
  {
    name: "swallowed: slowest answer (ms)",
    measured: Math.max(...silent.map(({ ms }) => ms)),
    limit: 5_000,
    of: silent.length,
    isTime: true,
  },
  {
    name: "swallowed: answers other than 503",
    measured: silent.filter(({ status }) => status !== 503 && status !== 200).length,
    limit: 0,
    of: silent.length,
  },
  {
    name: "slow network: answers other than 200 and 503",
    measured: slow.filter(({ status }) => status !== 503 && status !== 200).length,
    limit: 0,
    of: slow.length,
  },
  {
    name: "answers with the driver's words",
    measured: of("probe").filter(({ text }) => /ECONN|terminated|pg_|timeout/i.test(text ?? "")).length,
    limit: 0,
    of: of("probe").length,
  },
  {
    name: "restarted, failed over: answers other than 503 with Retry-After",
    measured: without_database.filter(({ status, retry }) => status !== 200 && !(status === 503 && retry)).length,
    limit: 0,
    of: without_database.length,
  },
  {
    name: "restarted: slowest first write (ms)",
    measured: restarted.at(-1) ?? Number.NaN,
    limit: 3_000,
    of: restarted.length,
    isTime: true,
  },
  {
    name: "failed over: slowest first write (ms)",
    measured: failed_over.at(-1) ?? Number.NaN,
    limit: 3_000,
    of: failed_over.length,
    isTime: true,
  },
  {
    name: "few connections: runs that did not succeed",
    measured: notSuccessful(during("few connections")),
    limit: 0,
    of: during("few connections").length,
  },
  {
    name: "drained: runs that did not succeed in their first attempt",
    measured: during("drained").filter(({ run_id }) => {
      const row = rows.get(run_id);
      return row?.status !== "success" || row.attempt !== 1;
    }).length,
    limit: 0,
    of: during("drained").length,
  },
  {
    name: "poison: innocents that did not succeed",
    measured: notSuccessful(during("poison")),
    limit: 0,
    of: during("poison").length,
  },
  {
    name: "poison: runs that did not end as error with the third crash",
    measured: survived.length,
    limit: 0,
    of: poison.length,
  },
];

console.log(
  `\nseed ${begin?.seed}, load at the start ${begin?.load.toFixed(1)}, lease ${lease_ms} ms, ${rows.size} runs`,
);
let failed = 0;
for (const { name, measured, limit, of: whole, isTime } of gates) {
  // What did not occur shows nothing.
  const holds = measured <= limit && whole !== 0;
  const counts = !isTime || times === "--times";
  if (!holds && counts) failed++;
  const mark = holds ? "holds " : counts ? "FAILS " : "slower";
  console.log(`${mark} ${name}: ${measured}${whole === undefined ? "" : ` of ${whole}`} (limit ${limit})`);
}
for (const [run_id, steps] of unexplained.slice(0, 5)) console.log(run_id, rows.get(run_id), steps);
for (const pair of reversed.slice(0, 5)) console.log(pair);
for (const violation of of("violation")) console.log(JSON.stringify(violation));
for (const probe of without_database.filter(({ status, retry }) => status !== 200 && !retry).slice(0, 5))
  console.log(probe);
for (const run of survived) console.log(run);
for (const run of ticks.filter(({ run_id }) => rows.get(run_id)?.status !== "success").slice(0, 5))
  console.log(run, rows.get(run.run_id));
process.exitCode = failed > 0 ? 1 : 0;
