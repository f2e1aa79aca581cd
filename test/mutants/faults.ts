import type { Mutant } from "./mutants.ts";

const faults = ["test/engine/database-faults.test.ts"];
const shared = ["test/engine/shared-data.test.ts"];
const pool = ["test/engine/host-pool.test.ts"];

/** Guards against databases, processes and hosts that misbehave. */
export const FAULT_MUTANTS: readonly Mutant[] = [
  {
    name: "postgres: a pool that is suspended waits for the answers of a server that does not respond",
    file: "src/platform/database/postgres/postgres-pool.ts",
    replace: ["      client.connection.stream.destroy();\n", ""],
    suites: ["test/engine/database-faults.test.ts"],
  },
  {
    name: "faults: processes create a run each for the same tick of a cron",
    file: "src/agent-server/crons/cron-scheduler.ts",
    replace: [
      "if ((await advanceCron(tx, dueOf(cron), next)) === 0) return undefined;",
      "await advanceCron(tx, dueOf(cron), next);",
    ],
    suites: ["test/engine/crons.test.ts"],
  },
  {
    name: "faults: a prune deletes the checkpoints from which a DeltaChannel is rebuilt",
    file: "src/agent-server/storage/checkpoints/checkpoints.ts",
    replace: ["if (!isRebuilt(row)) break;", "break;"],
    suites: ["test/http/thread-ttl.test.ts"],
  },
  {
    name: "faults: a run ends before its webhook is stored",
    file: "src/agent-server/engine/settlement/settle.ts",
    replace: [
      "await storeWebhooks(tx, { ...run, push_configs }, { values: state?.values, error });",
      "setTimeout(() => storeWebhooks(tx, { ...run, push_configs }, { values: state?.values, error }).catch(() => undefined), 50);",
    ],
    suites: ["test/engine/webhooks.test.ts"],
  },
  {
    name: "faults: processes send the same webhook",
    file: "src/agent-server/webhooks/webhook-deliveries.ts",
    replace: ["lease_ms = timeout_ms + LEASE_MARGIN_MS", "lease_ms = timeout_ms * 0"],
    suites: ["test/engine/webhooks.test.ts"],
  },
  {
    name: "faults: the webhook of a killed process is lost",
    file: "src/agent-server/webhooks/webhook-deliveries.ts",
    replace: ["lease_ms = timeout_ms + LEASE_MARGIN_MS", "lease_ms = timeout_ms * 1000"],
    suites: ["test/engine/webhooks.test.ts"],
  },
  {
    name: "faults: the rescue waits for locked rows",
    file: "src/agent-server/storage/run-leases.ts",
    replace: [
      "tx.dialect.skipLocked(lostRuns(tx, lost).selectAll())",
      "tx.dialect.forUpdate(lostRuns(tx, lost).selectAll())",
    ],
    suites: faults,
  },
  {
    name: "faults: a frozen process keeps its locks",
    file: "src/agent-server/engine/run-leases.ts",
    replace: ["await database.freeLocks(", "void ("],
    suites: faults,
  },
  {
    name: "faults: heartbeats wait for a connection of the pool",
    file: "src/agent-server/engine/run-leases.ts",
    replace: ["database.writeNow((tx) => renewLeases", "database.write((tx) => renewLeases"],
    suites: faults,
  },
  {
    name: "faults: a silent database connection is not detected",
    file: "src/platform/database/postgres/postgres-hints.ts",
    replace: ["void this.#checkHealth(client);", "void this.#checkHealth;"],
    suites: faults,
  },
  {
    name: "faults: timestamps of runs go back with the clock",
    file: "src/platform/lib/clock.ts",
    replace: ["if (system <= steady) return steady;", ""],
    suites: ["test/engine/clock.test.ts"],
  },
  {
    name: "faults: runs wait until a clock that was set back catches up",
    file: "src/agent-server/storage/run-leases.ts",
    replace: ["if (ms === 0) return;", "if (ms >= 0) return;"],
    suites: ["test/engine/clock.test.ts"],
  },
  {
    name: "faults: requests fail when the connection pool is exhausted",
    file: "src/platform/database/postgres/postgres-pool.ts",
    replace: ["if (!isFull(error)) throw error;", "throw error;"],
    suites: faults,
  },
  {
    name: "faults: waiting requests fail when the database is unavailable",
    file: "src/platform/database/database-errors.ts",
    replace: ["if (!isUnavailable(error) || isOver()) throw error;", "if (isOver() || error) throw error;"],
    suites: faults,
  },
  {
    name: "faults: a run that is claimed again continues in the first process, too",
    file: "src/agent-server/engine/worker.ts",
    replace: ['executor.start(earlier?.stop("lease_lost"))', "executor.start(earlier && undefined)"],
    suites: faults,
  },
  {
    name: "faults: the runs of a process that died stay with it (no rescue)",
    file: "src/agent-server/engine/run-leases.ts",
    replace: ["if (found.length === 0) return false;", "if (found.length >= 0) return false;"],
    suites: shared,
  },
  {
    name: "faults: heartbeats do not notice cancels",
    file: "src/agent-server/engine/run-leases.ts",
    replace: ['if (row.cancel_action !== null) void executor.stop("cancelled");', ""],
    suites: shared,
  },
  {
    name: "faults: readers wait for hints of other processes without a limit",
    file: "src/agent-server/engine/streams/event-log.ts",
    replace: ["updates.wait(feed.live ? undefined : this.#poll_ms)", "updates.wait(undefined)"],
    suites: shared,
  },
  {
    name: "faults: a cancelled run returns to the queue",
    file: "src/agent-server/storage/run-leases.ts",
    replace: ["case when cancel_action is null then 'pending' else status end", "'pending'"],
    suites: shared,
  },
  {
    name: "faults: the rescue waits until cancelled runs have ended",
    file: "src/agent-server/engine/run-leases.ts",
    replace: ["this.#ending.set(run.run_id, this.#endLater(run));", "await this.#endLater(run);"],
    suites: shared,
  },
  {
    name: "faults: a locked thread consumes the tick of its cron",
    file: "src/agent-server/crons/cron-scheduler.ts",
    replace: ["if (isUnavailable(error)) {", "if (!isUnavailable) {"],
    suites: ["test/http/crons.test.ts"],
  },
  {
    name: "faults: a drained run loses an attempt",
    file: "src/agent-server/engine/execution/executor.ts",
    replace: ["!this.#stopping) return this.#return({ spent: 0,", "!this.#stopping) return this.#return({ spent: 1,"],
    suites: shared,
  },
  {
    name: "faults: requests of users may go to private addresses",
    file: "src/platform/lib/safe-fetch/addresses.ts",
    replace: ["return !SPECIAL_V4.check(address);", "return address !== SPECIAL_V4.toString();"],
    suites: ["test/lib/safe-fetch.test.ts"],
  },
  {
    name: "faults: webhooks follow redirects",
    file: "src/agent-server/webhooks/webhook-deliveries.ts",
    replace: ['redirect: "manual",\n        body,', "body,"],
    suites: ["test/http/webhooks.test.ts"],
  },
  {
    name: "hosts: timers fire before queued messages of hosts",
    file: "src/agent-server/graph-hosts/pool.ts",
    replace: ["    await setImmediate();\n", "    await Promise.resolve(setImmediate);\n"],
    suites: pool,
  },
  {
    name: "hosts: a crash of a host counts as an attempt of runs that had not started",
    file: "src/agent-server/graph-hosts/pool.ts",
    replace: ["started || !host.ready;", "started !== null;"],
    suites: pool,
  },
  {
    name: "hosts: the time in which a host loads its graphs counts as silence",
    file: "src/agent-server/graph-hosts/pool.ts",
    replace: ["if (host.pinged_at !== undefined) host.pinged_at = performance.now();", ""],
    suites: pool,
  },
  {
    name: "hosts: the last messages of a Python host are lost after a failed write",
    file: "src/agent-server/graph-hosts/python/host-process.ts",
    replace: ["    readAfterFailedWrites(this.#socket);\n", ""],
    suites: ["test/engine/host-process.test.ts"],
  },
  {
    name: "hosts: a resume value that a subgraph has consumed is used again after a crash",
    file: "src/agent-server/graph-hosts/inside/execute.ts",
    replace: ["scope.isResumeConsumed = execution.resume_consumed;", ""],
    suites: ["test/engine/graph-code.test.ts"],
  },
  {
    name: "hosts: a lost run passes its breakpoint",
    file: "src/agent-server/graph-hosts/inside/execute.ts",
    replace: ["const stopped = resumed && ", "const stopped = !resumed && "],
    suites: ["test/crash/durability.test.ts"],
  },
  {
    name: "faults: serve claims runs before its graphs are loaded",
    file: "src/main.ts",
    replace: ['config.command === "serve" ? loaded : Promise.resolve({})', "Promise.resolve({})"],
    suites: ["test/cli/cli.test.ts"],
  },
  {
    name: "faults: the deletion of a run removes what later runs are rebuilt from",
    file: "src/agent-server/storage/run-deletion.ts",
    replace: ["  await detachNeeded(tx, run);\n", ""],
    suites: ["test/http/python-checkpoints.test.ts"],
  },
  {
    name: "faults: a run begins with an empty state at a checkpoint that was rolled back",
    file: "src/agent-server/engine/execution/resume-point.ts",
    replace: ["(await refusedCheckpoint(read, run, head, kwargs)) ??", ""],
    suites: ["test/http/rollback.test.ts"],
  },
  {
    name: "faults: feedback does not wait for the transactions that store runs",
    file: "src/experiments/storage/feedback.ts",
    replace: ["select pg_advisory_xact_lock(", "select concat("],
    suites: ["test/experiments/at-once.test.ts"],
  },
];
