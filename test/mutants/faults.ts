import type { Mutant } from "./mutants.ts";

const faults = ["test/engine/database-faults.test.ts"];
const pool = ["test/engine/host-pool.test.ts"];

/** Guards against databases, processes and hosts that misbehave. */
export const FAULT_MUTANTS: readonly Mutant[] = [
  {
    name: "faults: the rescue waits for rows that somebody else holds",
    file: "src/agent-server/storage/lost-runs.ts",
    replace: [
      "tx.dialect.skipLocked(lostRuns(tx, lost).selectAll())",
      "tx.dialect.forUpdate(lostRuns(tx, lost).selectAll())",
    ],
    suites: faults,
  },
  {
    name: "faults: a frozen process keeps what it has locked",
    file: "src/agent-server/engine/maintenance/rescue.ts",
    replace: ["await database.freeLocks(", "void ("],
    suites: faults,
  },
  {
    name: "faults: heartbeats wait for a connection of the pool",
    file: "src/agent-server/engine/heartbeat.ts",
    replace: ["database.writeNow((tx) => renewLeases", "database.write((tx) => renewLeases"],
    suites: faults,
  },
  {
    name: "faults: nobody notices that the database is silent",
    file: "src/platform/database/postgres/postgres-hints.ts",
    replace: ["void this.#watch(client);", "void this.#watch;"],
    suites: faults,
  },
  {
    name: "faults: times of runs follow a clock that is set back",
    file: "src/platform/lib/clock.ts",
    replace: ["if (system <= steady) return steady;", ""],
    suites: ["test/engine/clock.test.ts"],
  },
  {
    name: "faults: runs of before the clock was set back wait for it",
    file: "src/agent-server/storage/lost-runs.ts",
    replace: ["if (ms === 0) return;", "if (ms >= 0) return;"],
    suites: ["test/engine/clock.test.ts"],
  },
  {
    name: "faults: too few connections fail who wants one",
    file: "src/platform/database/postgres/postgres-pool.ts",
    replace: ["if (!isFull(error) || performance.now() > deadline) throw error;", "if (deadline > 0) throw error;"],
    suites: faults,
  },
  {
    name: "faults: who waits is told that the database is away",
    file: "src/platform/lib/unavailable.ts",
    replace: ["if (!isUnavailable(error) || isOver()) throw error;", "if (isOver() || error) throw error;"],
    suites: faults,
  },
  {
    name: "faults: a run that is claimed again goes on where it was, too",
    file: "src/agent-server/engine/worker.ts",
    replace: ['executor.start(earlier?.stop("lease_lost"))', "executor.start(earlier && undefined)"],
    suites: faults,
  },
  {
    name: "hosts: timers come before what hosts have said",
    file: "src/agent-server/graph-hosts/pool.ts",
    replace: ["    await setImmediate();\n", "    await Promise.resolve(setImmediate);\n"],
    suites: pool,
  },
  {
    name: "hosts: the death of a host counts against runs that had not begun",
    file: "src/agent-server/graph-hosts/pool.ts",
    replace: ["started || !host.ready;", "started !== null;"],
    suites: pool,
  },
];
