import type { Mutant } from "./mutants.ts";

const blocking = ["test/security/blocking.test.ts"];
const users = ["test/security/deployment-users.test.ts"];

const limits = ["test/security/workspace-limits.test.ts"];

/** Guards against requests that hold up others, and against deployments with the rights of the service. */
export const ISOLATION_MUTANTS: readonly Mutant[] = [
  {
    name: "isolation: the monitoring counts the runs of other workspaces",
    file: "src/agent-server/storage/run-overview.ts",
    replace: [
      '.as("bucket"))\n    .where("tenant_id", "=", tenant_id)',
      '.as("bucket"))\n    .where("tenant_id", ">=", tenant_id.slice(0, 0))',
    ],
    suites: ["test/http/app-api.test.ts"],
  },
  {
    name: "isolation: previews show the runs of other workspaces",
    file: "src/agent-server/storage/run-overview.ts",
    replace: [
      '.as("output"))\n      .where("tenant_id", "=", tenant_id)',
      '.as("output"))\n      .where("tenant_id", ">=", tenant_id.slice(0, 0))',
    ],
    suites: ["test/http/app-api.test.ts"],
  },
  {
    name: "isolation: tokens and costs are those of other workspaces, too",
    file: "src/experiments/storage/traces/outcome-sums.ts",
    replace: ['where("tenant_id", "=", tenant_id)', 'where("tenant_id", ">=", tenant_id.slice(0, 0))'],
    suites: ["test/traces/trace-page.test.ts"],
  },
  {
    name: "isolation: the code of evaluators has access to the network",
    file: "src/app/web-app.ts",
    replace: ["default-src 'none'", "default-src *"],
    suites: ["test/security/origins.test.ts"],
  },
  {
    name: "isolation: searches run on the serving thread",
    file: "src/platform/database/sqlite/sqlite.ts",
    replace: ["search: txOn(searcher)", "search: txOn(runnerOn(reader))"],
    suites: blocking,
  },
  {
    name: "isolation: large bodies are parsed on the serving thread",
    file: "src/platform/http/body-parser.ts",
    replace: ["const LARGE_BYTES = 256 * 1024;", "const LARGE_BYTES = 2 ** 30;"],
    suites: blocking,
  },
  {
    name: "isolation: metadata has no limit",
    file: "src/platform/contract/fields.ts",
    replace: ["const reason = unsearchableReason(object);", "const reason = unsearchableReason({});"],
    suites: blocking,
  },
  {
    name: "isolation: metadata has no limit after a change",
    file: "src/agent-server/metadata.ts",
    replace: [
      "const reason = given && unsearchableReason(merged);",
      "const reason = given && unsearchableReason(given);",
    ],
    suites: blocking,
  },
  {
    name: "isolation: containment takes quadratic time",
    file: "src/platform/database/sqlite/sqlite-connection.ts",
    replace: ["const MAX_LINEAR_SEARCH = 8;", "const MAX_LINEAR_SEARCH = Number.POSITIVE_INFINITY;"],
    suites: blocking,
  },
  {
    name: "isolation: one workspace can occupy all run slots",
    file: "src/agent-server/engine/worker.ts",
    replace: ["if (count >= half) return run.tenant_id;", "if (count < 0) return run.tenant_id;"],
    suites: ["test/security/fairness.test.ts"],
  },
  {
    name: "isolation: the number of open streams per user has no limit",
    file: "src/access/http/auth.ts",
    replace: ["if (LONG_RUNNING.test(context.req.path)) requireOpenResponse();\n", ""],
    suites: ["test/security/fairness.test.ts"],
  },
  {
    name: "isolation: the number of open streams per workspace has no limit",
    file: "src/access/http/auth.ts",
    replace: ["this.#countOf(tenant_id) >= per_workspace", "this.#countOf(tenant_id) > 1e9 * per_workspace"],
    suites: limits,
  },
  {
    name: "isolation: the queue of a workspace has no limit",
    file: "src/agent-server/context.ts",
    replace: ["if (per_workspace !== undefined && (await", "if (per_workspace === 0 && (await"],
    suites: limits,
  },
  {
    name: "isolation: the pending runs of a user have no limit",
    file: "src/agent-server/context.ts",
    replace: ["if (per_user !== undefined && (await", "if (per_user === 0 && (await"],
    suites: limits,
  },
  {
    name: "isolation: the running runs of a workspace have no limit",
    file: "src/agent-server/storage/claims/claims-in-turns.ts",
    replace: ["per_workspace - sumOf(users.values())", "claim.limit"],
    suites: limits,
  },
  {
    name: "isolation: the running runs of a user have no limit",
    file: "src/agent-server/storage/claims/claims-in-turns.ts",
    replace: ["count >= per_user;", "count < 0;"],
    suites: limits,
  },
  {
    name: "isolation: the deployments of a workspace have no limit",
    file: "src/control-plane/deployments/deployments.ts",
    replace: ["(await countDeployments(tx, context.caller.tenant_id)) > max", "max === 0"],
    suites: limits,
  },
  {
    name: "isolation: users cancel MCP calls of others",
    file: "src/agent-server/protocols/mcp/tool-calls.ts",
    replace: ["[tenant_id, user_id, session_id, request_id]", "[tenant_id, session_id, request_id]"],
    suites: ["test/http/mcp.test.ts"],
  },
  {
    name: "isolation: users answer the interrupts of others' MCP calls",
    file: "src/agent-server/protocols/mcp/tool-calls.ts",
    replace: ["configurable?.user_id !== user_id) return", "configurable?.user_id === undefined) return"],
    suites: ["test/http/mcp.test.ts"],
  },
  {
    name: "isolation: builds run as the user of the service",
    file: "src/control-plane/drivers/process/command.ts",
    replace: ["{ cwd, env, ...user, detached", "{ cwd, env, detached"],
    suites: users,
  },
  {
    name: "isolation: instances run as the user of the service",
    file: "src/control-plane/drivers/process/launch.ts",
    replace: ["      ...user,\n", ""],
    suites: users,
  },
  {
    name: "isolation: all deployments run as the same user",
    file: "src/control-plane/drivers/process/system-users.ts",
    replace: [
      "      if ((await createFolder(allocation)) && (await register(uid, allocation))) return { uid, gid: uid };",
      "      if (allocation) return { uid: from, gid: from };",
    ],
    suites: users,
  },
  {
    name: "isolation: source is built with the rights of the service for several workspaces",
    file: "src/control-plane/drivers/process/driver.ts",
    replace: ["(await listWorkspaces(database.read, undefined)).length > 1", "shared_reason.length === 0"],
    suites: users,
  },
  {
    name: "isolation: a public link searches the whole trace of a shared run",
    file: "src/experiments/storage/traces/trace-search.ts",
    replace: ["  if (part) query = query.where(isInPart(part));\n", ""],
    suites: ["test/traces/sharing.test.ts"],
  },
  {
    name: "isolation: the JWT of a member of several workspaces is forwarded to instances",
    file: "src/app/deployment-front.ts",
    replace: ["{ refuses_members: true }", "{ refuses_members: false }"],
    suites: ["test/control/router/access.test.ts"],
  },
];
