import { type DatabaseName, databases } from "./databases.ts";

let isLong = false;
function count(name: string, fallback: number): number {
  isLong ||= process.env[name] !== undefined;
  return Number(process.env[name] ?? fallback);
}

/** How often the open-ended suites try: a few times in CI, as often as docs/reliability.md says in `npm run test:soak`. */
export const COUNTS = {
  /** Kills of a server, on each database; half as many under readers, a tenth in the middle of uploads. */
  kills: count("CRASH_KILLS", 3),
  /** Connections that readers close at random, on each database. */
  reconnects: count("RECONNECTS", 400),
  /** Kills of Python graph hosts, on each database. */
  host_kills: count("HOST_KILLS", 10),
  /** Sequences of commands on each database; a tenth as many with kills. */
  model_sequences: count("MODEL_SEQUENCES", 20),
  /** Requests to the agent server; a fifth as many to each other API. */
  fuzz_requests: count("FUZZ_REQUESTS", 2_000),
  /** Sequences of commands to the control plane with a fault, on SQLite; a tenth as many on Postgres. */
  control_sequences: count("CONTROL_SEQUENCES", 15),
  /** Every so many calls of one long sequence to the control plane get a fault; every eight times as many on Postgres. */
  control_step: count("CONTROL_STEP", 4),
  /** Requests through the router while it switches between instances, 50 times for each 10,000 requests. */
  router_requests: count("ROUTER_REQUESTS", 3_000),
  /** Faults of each kind against three processes on one Postgres. */
  faults: count("FAULTS", 1),
  /** Of these processes: how often one is frozen, how often one is killed, and how often all are restarted one after the other. */
  freezes: count("FREEZES", 2 * Number(process.env.FAULTS ?? 1)),
  process_kills: count("PROCESS_KILLS", 3 * Number(process.env.FAULTS ?? 1)),
  rolling_restarts: count("ROLLING_RESTARTS", Number(process.env.FAULTS ?? 1)),
} as const;

/** A checkout of an earlier version, which the processes of the fault test have at first. They are updated one after the other. */
export const UPDATE_FROM = process.env.UPDATE_FROM;

const hasOwnCounts = isLong;

/** Repeats a run of an open-ended suite; each prints the one it has used. */
export const SEED = count("SEED", Date.now() % 1_000_000);

/** The databases that random searches use: all with counts of their own, as in `npm run test:soak`; otherwise the one that the seed selects. */
export const searchedDatabases: readonly DatabaseName[] = hasOwnCounts
  ? databases
  : databases.filter((_, n) => n === SEED % databases.length);
