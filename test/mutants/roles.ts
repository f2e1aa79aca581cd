import type { Mutant } from "./mutants.ts";

const suites = ["test/engine/roles.test.ts"];

/** Guards of the roles of processes. */
export const ROLE_MUTANTS: readonly Mutant[] = [
  {
    name: "roles: a worker serves all routes to the network",
    file: "src/app/compose/http.ts",
    replace: ["served: isWorker ? workerRoutes(app, shared) : app", "served: app"],
    suites,
  },
  {
    name: "roles: a worker forwards requests to deployments",
    file: "src/app/compose/http.ts",
    replace: ["const front = isWorker\n    ? undefined", "const front = !isWorker\n    ? undefined"],
    suites,
  },
  {
    name: "roles: the HTTP app of the project responds to requests for a worker's metrics",
    file: "src/app/app.ts",
    replace: ['app.fetch(req.raw, { origin: "app" })', "app.fetch(req.raw, {})"],
    suites,
  },
  {
    name: "roles: an API process executes runs",
    file: "src/agent-server/engine/engine.ts",
    replace: ['return this.#options.settings.role !== "api";', "return true;"],
    suites,
  },
  {
    name: "roles: workers create the runs of crons",
    file: "src/main.ts",
    replace: ["...(isWorker ? [] : agent_services)", "...agent_services"],
    suites,
  },
  {
    name: "roles: processes on SQLite can have different roles",
    file: "src/config/settings/server.ts",
    replace: ["if (!database_url && workers === 0 && !share_data)", "if (!database_url && rollout)"],
    suites: ["test/cli/settings.test.ts"],
  },
  {
    name: "roles: the runs of a worker process that ended wait for their leases",
    file: "src/platform/database/sqlite/shared-hints.ts",
    replace: ["databases.get(file)?.lost.add(worker_id)", "databases.get(file)?.lost.has(worker_id)"],
    suites: ["test/engine/worker-processes.test.ts"],
  },
  {
    name: "roles: worker processes on SQLite exchange no hints",
    file: "src/platform/database/sqlite/shared-hints.ts",
    replace: ["if (channels.size === 0) return;", "return;"],
    suites: ["test/lib/shared-hints.test.ts"],
  },
  {
    name: "roles: worker processes outlive their service",
    file: "src/cli/worker-processes.ts",
    replace: ['process.once("disconnect", () => process.kill(process.pid, "SIGTERM"));', ""],
    suites: ["test/engine/worker-processes.test.ts"],
  },
  {
    name: "roles: a run that has ended two processes executes in the next one",
    file: "src/agent-server/engine/execution/executor.ts",
    replace: ["this.run.crashes > 0 || this.run.attempt >= ISOLATED_FROM", "this.run.crashes > 0"],
    suites: ["test/engine/worker-processes.test.ts"],
  },
];
