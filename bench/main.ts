/**
 * The benchmark: compares Threadmill with LangGraph alone (the floor) and with the in-memory development server (the peer), in rounds that
 * alternate between them.
 *
 * Usage: node bench/main.ts [--rounds N] [--only name,...] [--quick]
 *   --rounds  number of rounds (default: 3, with --quick 1)
 *   --only    only these measurements (startup, create-wait, stateless-wait, custom-events, growing-thread, memory, cancel,
 *             rollback, readers, open-streams, many-readers, replay, experiments, router, hostile, traces, tracing, trace-reading, evaluate,
 *             store, crons, flood, python, python-peers, web-compare, web-trace; many-events and soak, which are measured only if they are named) and
 *             subjects (threadmill-normal, threadmill-full, threadmill-postgres, floor, peer)
 *   --quick   small sizes, to check that everything works
 */
import { mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { FULL, QUICK } from "./measurement.ts";
import { measurements } from "./measurements/all.ts";
import { type Report, toJson, toMarkdown } from "./report.ts";
import { Results } from "./results.ts";
import { takeAllRounds } from "./rounds.ts";
import { type Subject, subjects } from "./subjects.ts";

const folder = join(import.meta.dirname, "results");

interface Options {
  rounds: number;
  quick: boolean;
  /** Names of measurements and subjects; empty for all. */
  only: string[];
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const options = readOptions();
const results = new Results();
const report: Report = {
  facts: facts(options),
  measurements: select(measurements, options.only).filter(
    ({ name, minutes }) => !minutes || options.only.includes(name),
  ),
  subjects: await prepare(select(subjects, options.only), results),
  results,
};
const sizes = options.quick ? QUICK : FULL;
for (const measurement of report.measurements) {
  await takeAllRounds(measurement, report.subjects, { rounds: options.rounds, sizes, results });
}
writeReport(report);

function readOptions(): Options {
  const flags = {
    rounds: { type: "string" },
    only: { type: "string", multiple: true },
    quick: { type: "boolean" },
  } as const;
  const { values } = parseArgs({ options: flags });
  const { quick = false } = values;
  const rounds = Number(values.rounds ?? (quick ? 1 : 3));
  if (!Number.isInteger(rounds) || rounds < 1) exitWith("--rounds must be a whole number, 1 or more.");
  const only = (values.only ?? []).flatMap((names) => names.split(","));
  const known = [...measurements, ...subjects].map(({ name }) => name as string);
  const unknown = only.filter((name) => !known.includes(name));
  if (unknown.length > 0) exitWith(`--only: unknown ${unknown.join(", ")}. Valid names: ${known.join(", ")}.`);
  return { rounds, quick, only };
}

function exitWith(reason: string): never {
  console.error(`error: ${reason}`);
  process.exit(2);
}

/** The named items; all items when none is named. */
function select<T extends { name: string }>(all: readonly T[], only: readonly string[]): readonly T[] {
  const named = all.filter(({ name }) => only.includes(name));
  return named.length > 0 ? named : all;
}

/** @returns the subjects that are available on this machine */
async function prepare(all: readonly Subject[], results: Results): Promise<Subject[]> {
  const ready: Subject[] = [];
  for (const subject of all) {
    try {
      await subject.prepare?.();
      ready.push(subject);
    } catch (error) {
      results.failures.push(`${subject.name} is skipped: ${(error as Error).message}`);
      console.log(results.failures.at(-1));
    }
  }
  return ready;
}

/** Facts about the machine that the figures depend on. */
function facts({ rounds, quick }: Options): string[] {
  const [first, ...others] = cpus();
  const load = loadavg().map((value) => value.toFixed(2));
  return [
    `${new Date().toISOString()}, ${rounds} rounds${quick ? ", **quick: the sizes are too small for meaningful figures**" : ""}`,
    `Node.js ${process.version}, ${process.platform} ${process.arch}, ${1 + others.length} × ${first?.model}, ${Math.round(totalmem() / 1e9)} GB`,
    `load average before the start: ${load.join(", ")}; the load generator shares the cores with the servers`,
    `SQLite writes to ${tmpdir()} (${isInMemory(tmpdir()) ? "**in memory**: synchronous=full costs nothing there" : "on a disk"})`,
  ];
}

/** Whether a folder is on a tmpfs of Linux. */
function isInMemory(path: string): boolean {
  return statfsSync(path).type === 0x01021994;
}

function writeReport(report: Report): void {
  const markdown = toMarkdown(report);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "latest.md"), markdown);
  writeFileSync(join(folder, "latest.json"), toJson(report));
  console.log(`\n${markdown}\nWritten to ${folder} (git ignores it).`);
}
