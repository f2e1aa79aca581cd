import { AUTH_SERVICE_MUTANTS } from "./auth-service.ts";
import { DEPLOYMENT_MUTANTS } from "./deployments.ts";
import { DOCKER_MUTANTS } from "./docker.ts";
import { FAULT_MUTANTS } from "./faults.ts";
import { FLOW_MUTANTS } from "./flows.ts";
import { GRAPH_TOKEN_MUTANTS } from "./graph-tokens.ts";
import { ISOLATION_MUTANTS } from "./isolation.ts";
import { ROLLOUT_MUTANTS } from "./rollout.ts";
import { ROUTER_MUTANTS } from "./router.ts";

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
    name: "engine: the fence: any worker may write for any run",
    file: "src/agent-server/storage/run-leases.ts",
    replace: [
      "(await tx.first(fenceQuery(tx, lease))) !== undefined;",
      "(await tx.first(fenceQuery(tx, lease))) !== null;",
    ],
    suites: ["test/storage/conformance.test.ts", "test/http/cancel.test.ts"],
  },
  {
    name: "engine: a run may end as if no cancel had been accepted",
    file: "src/agent-server/storage/run-leases.ts",
    replace: [
      '    .where("status", "=", RUNNING)\n    .where("cancel_action", "is", null),\n);\n\n/** Ends a run that',
      '    .where("status", "=", RUNNING),\n);\n\n/** Ends a run that',
    ],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "engine: the unique index: two runs of a thread may run at once",
    file: "src/agent-server/storage/migrations/001-agent-server.ts",
    replace: ["create unique index runs_one_running_per_thread", "create index runs_one_running_per_thread"],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "engine: a rollback leaves the channel values",
    file: "src/agent-server/storage/run-deletion.ts",
    replace: [
      '["checkpoint_writes", "checkpoint_values", "checkpoints"] as const',
      '["checkpoint_writes", "checkpoints"] as const',
    ],
    suites: ["test/http/rollback.test.ts"],
  },
  {
    name: "engine: a rolled-back answer has replaced the question",
    file: "src/agent-server/storage/checkpoint-inserts.ts",
    replace: ["[replaceWriteQuery, seq]", "[replaceWriteQuery, 0]"],
    suites: ["test/http/rollback.test.ts"],
  },
  {
    name: "engine: readers look first and subscribe afterwards",
    file: "src/agent-server/engine/event-log.ts",
    replace: [
      "await this.#wait(feed, watcher);\n        }\n      }\n    } finally",
      "watcher.forget();\n          await this.#wait(feed, watcher);\n        }\n      }\n    } finally",
    ],
    suites: ["test/engine/event-log.test.ts"],
  },
  {
    name: "engine: a stream closes before the status of its run is saved",
    file: "src/agent-server/engine/settle.ts",
    replace: [
      "  const ending = await database.write(",
      "  announce(database, log, run.run_id, { status: settlement.status, output: settlement.output }, unwritten.events);\n  const ending = await database.write(",
    ],
    suites: ["test/http/cancel.test.ts", "test/engine/readers.test.ts"],
  },
  {
    name: "engine: a graph does not wait for its checkpoints",
    file: "src/agent-server/graph-hosts/inside/commit-points.ts",
    replace: ["return this.#usersCodeRan(step) && this.#mayGoOn(step);", "return false;"],
    suites: ["test/crash/durability.test.ts"],
  },
  {
    name: "the fence of deployments: whoever had the lease once may write",
    file: "src/control-plane/storage/leases.ts",
    replace: ['    .where("lease_epoch", "=", epoch)\n    .where("lease_holder"', '    .where("lease_holder"'],
    suites: ["test/control/leases.test.ts"],
  },
  {
    name: "a revision moves wherever it was",
    file: "src/control-plane/storage/revision-steps.ts",
    replace: ['.where("status", "=", from)', '.where("revision_id", "=", revision_id)'],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "an interrupt undoes a switch of the traffic",
    file: "src/control-plane/reconcile/next-step.ts",
    replace: [" && rolloutOf(one) !== switched", ' && switched !== ""'],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "all instances of a revision that is deployed again are taken for new ones",
    file: "src/control-plane/reconcile/deployment-state.ts",
    replace: [" && revision.deploying_at === instance.rollout", ""],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "an interrupt takes along what serves",
    file: "src/control-plane/reconcile/apply-step.ts",
    replace: ['if (from === "DEPLOYING") await drain', "if (deploying_at !== null) await drain"],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "time in which nobody looked counts for the deadline",
    file: "src/control-plane/reconcile/next-step.ts",
    replace: [
      "Math.max(revision.deploying_at ?? 0, kept_since)",
      "Math.max(revision.deploying_at ?? 0, kept_since * 0)",
    ],
    suites: ["test/control/process.test.ts"],
  },
  {
    name: "instances that nobody knows go on for ever",
    file: "src/control-plane/cleanup/orphaned-instances.ts",
    replace: ["!known.has(instance_id)", 'known.has("nobody")'],
    suites: ["test/control/process.test.ts"],
  },
  {
    name: "a sealed text opens in any row",
    file: "src/access/encryption/key-ring.ts",
    replace: ["tenant_id, table, row_id, column]));", "tenant_id, table, column]));"],
    suites: ["test/vault/key-ring.test.ts"],
  },
  {
    name: "a start does without a key that the database has met",
    file: "src/access/encryption/open-key-ring.ts",
    replace: ["if (missing.length > 0) {", "if (missing.length < 0) {"],
    suites: ["test/vault/key-check.test.ts"],
  },
  {
    name: "a service goes on sealing with the key of before a rotation",
    file: "src/access/encryption/key-ring.ts",
    replace: ["    this.followFile();\n    return sealWith(", "    return sealWith("],
    suites: ["test/vault/key-ring.test.ts"],
  },
  {
    name: "a rotation overwrites what was sealed meanwhile",
    file: "src/access/storage/sealed-columns.ts",
    replace: [` and \${text} = \${sealed}\``, "`"],
    suites: ["test/vault/sealed-columns.test.ts"],
  },
  {
    name: "a redirect takes credentials to another origin",
    file: "src/platform/lib/safe-fetch/redirects.ts",
    replace: [" && !(elsewhere && !HARMLESS.has(name))", ""],
    suites: ["test/lib/safe-fetch.test.ts"],
  },
  ...AUTH_SERVICE_MUTANTS,
  ...FAULT_MUTANTS,
  ...FLOW_MUTANTS,
  ...GRAPH_TOKEN_MUTANTS,
  ...DEPLOYMENT_MUTANTS,
  ...DOCKER_MUTANTS,
  ...ISOLATION_MUTANTS,
  ...ROLLOUT_MUTANTS,
  ...ROUTER_MUTANTS,
  {
    name: "access: pages of any origin use an open service",
    file: "src/app/origins.ts",
    replace: ['throw new ApiError("forbidden_origin"', 'if (!origin) throw new ApiError("forbidden_origin"'],
    suites: ["test/security/origins.test.ts"],
  },
  {
    name: "access: pages of this machine use the control plane of an open service",
    file: "src/app/origins.ts",
    replace: ["if (!isClosed && isOurs(path)) return false;", ""],
    suites: ["test/security/origins.test.ts"],
  },
  {
    name: "access: what a page loads without saying who it is is answered",
    file: "src/app/origins.ts",
    replace: ["if (origin === undefined && site === undefined)", "if (origin === undefined)"],
    suites: ["test/security/origins.test.ts"],
  },
  {
    name: "access: a deployment's page keeps its rights when the deployment is gone",
    file: "src/app/origins.ts",
    replace: ["if (!isClosed && isBorrowed && isOurs(path)) return false;", "if (isBorrowed && !host) return false;"],
    suites: ["test/security/origins.test.ts"],
  },
  {
    name: "deployments: the role of one may do anything",
    file: "src/control-plane/storage/deployment-schema.ts",
    replace: ["login password", "superuser login password"],
    suites: ["test/security/deployment-roles.test.ts"],
  },
  {
    name: "access: a revoked key still opens",
    file: "src/access/access.ts",
    replace: [" || row.revoked_at !== null", ""],
    suites: ["test/http/route-table.test.ts"],
  },
  {
    name: "access: the id of a key opens without its secret",
    file: "src/access/access.ts",
    replace: ["!isOfDigest(text, row?.digest ?? NO_DIGEST) || !row ||", "!row ||"],
    suites: ["test/http/route-table.test.ts"],
  },
  {
    name: "access: a key works in any workspace",
    file: "src/access/access.ts",
    replace: ["if (wanted && idOfWorkspace(wanted) !== tenant_id)", "if (wanted && !idOfWorkspace(wanted))"],
    suites: ["test/http/route-table.test.ts"],
  },
  {
    name: "access: a running service does not notice its first key",
    file: "src/access/access.ts",
    replace: ["this.#mayBeOpen && (await hasApiKeys(this.#database.read))", "this.#mayBeOpen && !this.#database.read"],
    suites: ["test/http/open-mode.test.ts"],
  },
  {
    name: "access: scopes are not looked at",
    file: "src/access/http/auth.ts",
    replace: ["if (scope && !mayUse(caller, scope))", "if (scope && !caller)"],
    suites: ["test/http/route-table.test.ts"],
  },
  {
    name: "access: a JWT may be meant for another service",
    file: "src/access/oidc-issuer.ts",
    replace: ["        audience,\n", ""],
    suites: ["test/http/jwt.test.ts"],
  },
  {
    name: "access: a stream goes on after its key was revoked",
    file: "src/platform/http/client-abort.ts",
    replace: ['context.get("onAccessEnd")(abort)', "() => undefined"],
    suites: ["test/security/open-streams.test.ts"],
  },
  {
    name: "access: a stream goes on after its JWT has expired",
    file: "src/access/grant-watch.ts",
    replace: ["if (held.grant.expires_at <= now)", "if (held.grant.expires_at < 0)"],
    suites: ["test/security/open-streams.test.ts"],
  },
  {
    name: "graphs: data of clients is revived as any class",
    file: "src/agent-server/graph-hosts/inside/record-escapes.ts",
    replace: ["if (looksLikeRecord(object) && !isPermitted(object as Fields))", "if (!object)"],
    suites: ["test/security/records.test.ts"],
  },
  {
    name: "access: an administrator revokes keys of other workspaces",
    file: "src/access/keys/api-keys.ts",
    replace: ["const tenant_id = isOperator(caller) ? undefined : caller.tenant_id;", "const tenant_id = undefined;"],
    suites: ["test/http/admin.test.ts"],
  },
  {
    name: "access: threads of other workspaces are found",
    file: "src/agent-server/storage/threads.ts",
    replace: [
      '.where("thread_id", "=", p("thread_id")).where("tenant_id", "=", p("tenant_id")),\n);\n\n/**\n * The thread, held',
      '.where("thread_id", "=", p("thread_id")),\n);\n\n/**\n * The thread, held',
    ],
    suites: ["test/http/tenancy.test.ts"],
  },
  {
    name: "access: a change of an assistant changes that of other workspaces",
    file: "src/agent-server/storage/assistants.ts",
    replace: [
      '.set({ ...changed, updated_at: nowMs })\n      .where("tenant_id", "=", tenant_id)',
      '.set({ ...changed, updated_at: nowMs })\n      .where("tenant_id", ">=", tenant_id.slice(0, 0))',
    ],
    suites: ["test/http/tenancy.test.ts"],
  },
  {
    name: "access: deleting an assistant stops runs of other workspaces",
    file: "src/agent-server/storage/runs.ts",
    replace: [
      '      .where("tenant_id", "=", tenant_id)\n      .where("assistant_id", "=", assistant_id)',
      '      .where("tenant_id", ">=", tenant_id.slice(0, 0))\n      .where("assistant_id", "=", assistant_id)',
    ],
    suites: ["test/http/tenancy.test.ts"],
  },
];
