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
    replace: ['if (settings.role !== "api") {', "{"],
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
    file: "src/config/config.ts",
    replace: ["  if (!database_url)\n    refuse(", "  if (!database_url && rollout)\n    refuse("],
    suites: ["test/cli/settings.test.ts"],
  },
];
