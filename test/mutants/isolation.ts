import type { Mutant } from "./mutants.ts";

const blocking = ["test/security/blocking.test.ts"];
const users = ["test/security/deployment-users.test.ts"];

/** Guards against requests that hold up others, and against deployments with the rights of the service. */
export const ISOLATION_MUTANTS: readonly Mutant[] = [
  {
    name: "isolation: searches are carried out on the serving thread",
    file: "src/platform/database/sqlite/sqlite.ts",
    replace: ["search: transactionOn(searcher)", "search: transactionOn(runnerOn(reader))"],
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
    replace: ["const reason = whyNotSearchable(object);", "const reason = whyNotSearchable({});"],
    suites: blocking,
  },
  {
    name: "isolation: metadata has no limit after a change",
    file: "src/agent-server/metadata.ts",
    replace: ["const reason = given && whyNotSearchable(merged);", "const reason = given && whyNotSearchable(given);"],
    suites: blocking,
  },
  {
    name: "isolation: containment takes the square of the time",
    file: "src/platform/lib/json/containment.ts",
    replace: ["const FEW = 8;", "const FEW = Number.POSITIVE_INFINITY;"],
    suites: blocking,
  },
  {
    name: "isolation: runs of one workspace come before those of all others",
    file: "src/agent-server/engine/worker.ts",
    replace: ["if (count >= half) return run.tenant_id;", "if (count < 0) return run.tenant_id;"],
    suites: ["test/security/fairness.test.ts"],
  },
  {
    name: "isolation: a user opens any number of streams",
    file: "src/access/http/auth.ts",
    replace: ["if (isLimited) answers.check(caller, context.req.path);\n", ""],
    suites: ["test/security/fairness.test.ts"],
  },
  {
    name: "isolation: builds run as the service",
    file: "src/control-plane/drivers/process/command.ts",
    replace: ["{ cwd, env, ...user, detached", "{ cwd, env, detached"],
    suites: users,
  },
  {
    name: "isolation: instances run as the service",
    file: "src/control-plane/drivers/process/launch.ts",
    replace: ["      ...user,\n", ""],
    suites: users,
  },
  {
    name: "isolation: all deployments are one user",
    file: "src/control-plane/drivers/process/system-users.ts",
    replace: [
      "      if ((await makeNew(own)) && (await register(uid, own))) return { uid, gid: uid };",
      "      if (own) return { uid: from, gid: from };",
    ],
    suites: users,
  },
  {
    name: "isolation: source is built with the rights of the service for several workspaces",
    file: "src/control-plane/drivers/process/driver.ts",
    replace: ["(await listWorkspaces(database.read, undefined)).length > 1", "shared.length === 0"],
    suites: users,
  },
];
