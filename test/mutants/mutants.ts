/** One guard of the engine, switched off. */
export interface Mutant {
  name: string;
  /** Path from the repository's root. */
  file: string;
  /** Text that must be there once, and what stands in its place. */
  replace: [guard: string, nothing: string];
  /** Suites of which at least one must fail. */
  suites: string[];
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: "the fence: any worker may write for any run",
    file: "src/storage/run-leases.ts",
    replace: [
      "(await tx.first(fenceQuery(tx, lease))) !== undefined;",
      "(await tx.first(fenceQuery(tx, lease))) !== null;",
    ],
    suites: ["test/storage/conformance.test.ts", "test/http/cancel.test.ts"],
  },
  {
    name: "a run may end as if no cancel had been accepted",
    file: "src/storage/run-leases.ts",
    replace: [
      '    .where("status", "=", RUNNING)\n    .where("cancel_action", "is", null),\n);\n\n/** Ends a run that',
      '    .where("status", "=", RUNNING),\n);\n\n/** Ends a run that',
    ],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "the unique index: two runs of a thread may run at once",
    file: "src/storage/migrations/001-agent-server.ts",
    replace: ["create unique index runs_one_running_per_thread", "create index runs_one_running_per_thread"],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "a rollback leaves the channel values",
    file: "src/storage/run-deletion.ts",
    replace: [
      '["checkpoint_writes", "checkpoint_values", "checkpoints"] as const',
      '["checkpoint_writes", "checkpoints"] as const',
    ],
    suites: ["test/http/rollback.test.ts"],
  },
  {
    name: "a rolled-back answer has replaced the question",
    file: "src/storage/checkpoint-inserts.ts",
    replace: ["[replaceWriteQuery, seq]", "[replaceWriteQuery, 0]"],
    suites: ["test/http/rollback.test.ts"],
  },
  {
    name: "readers look first and subscribe afterwards",
    file: "src/engine/event-log.ts",
    replace: [
      "await this.#wait(feed, watcher);\n        }\n      }\n    } finally",
      "watcher.forget();\n          await this.#wait(feed, watcher);\n        }\n      }\n    } finally",
    ],
    suites: ["test/engine/event-log.test.ts"],
  },
  {
    name: "a stream closes before the status of its run is saved",
    file: "src/engine/settle.ts",
    replace: [
      "  const ending = await database.write(",
      "  announce(database, log, run.run_id, { status: settlement.status, output: settlement.output }, unwritten.events);\n  const ending = await database.write(",
    ],
    suites: ["test/http/cancel.test.ts", "test/engine/readers.test.ts"],
  },
  {
    name: "a graph does not wait for its checkpoints",
    file: "src/graphs/inside/commit-points.ts",
    replace: ["return this.#usersCodeRan(step) && this.#mayGoOn(step);", "return false;"],
    suites: ["test/crash/durability.test.ts"],
  },
  {
    name: "the fence of deployments: whoever had the lease once may write",
    file: "src/storage/control/leases.ts",
    replace: ['    .where("lease_epoch", "=", epoch)\n    .where("lease_holder"', '    .where("lease_holder"'],
    suites: ["test/control/leases.test.ts"],
  },
  {
    name: "a revision moves wherever it was",
    file: "src/storage/control/revision-steps.ts",
    replace: ['.where("status", "=", from)', '.where("revision_id", "=", revision_id)'],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "an interrupt undoes a switch of the traffic",
    file: "src/control/next-step.ts",
    replace: [" && rolloutOf(one) !== switched", ' && switched !== ""'],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "all instances of a revision that is deployed again are taken for new ones",
    file: "src/control/deployment-state.ts",
    replace: [" && revision.deploying_at === instance.rollout", ""],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "an interrupt takes along what serves",
    file: "src/control/acts.ts",
    replace: ['if (from === "DEPLOYING") await drain', "if (deploying_at !== null) await drain"],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "time in which nobody looked counts for the deadline",
    file: "src/control/next-step.ts",
    replace: ["Math.max(revision.deploying_at ?? 0, kept_since)", "Math.max(revision.deploying_at ?? 0, kept_since * 0)"],
    suites: ["test/control/process.test.ts"],
  },
  {
    name: "instances that nobody knows go on for ever",
    file: "src/control/garbage.ts",
    replace: ["!known.has(instance_id)", 'known.has("nobody")'],
    suites: ["test/control/process.test.ts"],
  },
];
