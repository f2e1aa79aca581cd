import { A2A_MUTANTS } from "./a2a.ts";
import { AG_UI_MUTANTS } from "./ag-ui.ts";
import { AUTH_SERVICE_MUTANTS } from "./auth-service.ts";
import { CUSTOM_AUTH_MUTANTS } from "./custom-auth.ts";
import { DEPLOYMENT_MUTANTS } from "./deployments.ts";
import { DOCKER_MUTANTS } from "./docker.ts";
import { FAULT_MUTANTS } from "./faults.ts";
import { FLOW_MUTANTS } from "./flows.ts";
import { GRAPH_TOKEN_MUTANTS } from "./graph-tokens.ts";
import { ISOLATION_MUTANTS } from "./isolation.ts";
import { KUBERNETES_MUTANTS } from "./kubernetes.ts";
import { ROLE_MUTANTS } from "./roles.ts";
import { ROLLOUT_MUTANTS } from "./rollout.ts";
import { ROUTER_MUTANTS } from "./router.ts";
import { THREAD_PROTOCOL_MUTANTS } from "./thread-protocol.ts";

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
    name: "engine: any worker writes for any run (no fence)",
    file: "src/agent-server/storage/run-leases.ts",
    replace: [
      "(await tx.first(fenceQuery(tx, lease))) !== undefined;",
      "(await tx.first(fenceQuery(tx, lease))) !== null;",
    ],
    suites: ["test/storage/conformance.test.ts", "test/http/cancel.test.ts"],
  },
  {
    name: "engine: a run ends as if it had not been cancelled",
    file: "src/agent-server/storage/run-leases.ts",
    replace: [
      '    .where("status", "=", RUNNING)\n    .where("cancel_action", "is", null)\n    .returning("push_configs"),',
      '    .where("status", "=", RUNNING)\n    .returning("push_configs"),',
    ],
    suites: ["test/storage/conformance.test.ts"],
  },
  {
    name: "engine: two runs of a thread run at once (no unique index)",
    file: "src/agent-server/storage/migrations/001-009.ts",
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
    name: "runs: a thread that a run has created stays bound after the rollback of the run",
    file: "src/agent-server/runs/runs.ts",
    replace: ["newlyBound(created, JSON.stringify(own))", "newlyBound(created)"],
    suites: ["test/http/rollback.test.ts"],
  },
  {
    name: "engine: a rolled-back answer replaces the interrupt",
    file: "src/agent-server/storage/checkpoints/inserts.ts",
    replace: ["[replaceWriteQuery, seq]", "[replaceWriteQuery, 0]"],
    suites: ["test/http/rollback.test.ts"],
  },
  {
    name: "engine: readers read before they subscribe",
    file: "src/agent-server/engine/streams/event-log.ts",
    replace: [
      "await this.#wait(feed, updates);\n        }\n      }\n    } finally",
      "updates.reset();\n          await this.#wait(feed, updates);\n        }\n      }\n    } finally",
    ],
    suites: ["test/engine/event-log.test.ts"],
  },
  {
    name: "streams: readers miss events between two executions in one process",
    file: "src/agent-server/engine/streams/feed.ts",
    replace: ["if (this.#events.at(-1)?.seq !== seq) this.#clear();", ""],
    suites: ["test/engine/event-log.test.ts"],
  },
  {
    name: "streams: readers miss the last events of another process",
    file: "src/agent-server/engine/streams/feed.ts",
    replace: ["if (epoch !== this.#epoch) this.#epoch = undefined;", ""],
    suites: ["test/engine/event-log.test.ts"],
  },
  {
    name: "streams: readers miss events that are published late",
    file: "src/agent-server/engine/streams/feed.ts",
    replace: ["if (last && events[0]?.seq !== last.seq + 1) {", "if (!last && !events[0]) {"],
    suites: ["test/engine/event-log.test.ts"],
  },
  {
    name: "streams: readers of an ended run read the database without need",
    file: "src/agent-server/engine/streams/event-log.ts",
    replace: ["if (feed.endsAt(seen)) return;", ""],
    suites: ["test/engine/event-log.test.ts"],
  },
  {
    name: "retention: deletes runs whose output is the base of events",
    file: "src/agent-server/storage/events.ts",
    replace: [
      'selectFrom("run_events as event").select("event.seq")',
      'selectFrom("run_events as event").where("event.seq", "<", 0).select("event.seq")',
    ],
    suites: ["test/http/retention.test.ts"],
  },
  {
    name: "engine: a stream closes before the status of its run is saved",
    file: "src/agent-server/engine/settlement/settle.ts",
    replace: [
      "  const ended = await database.write(",
      "  publishRunEnd(context, run, { status: settlement.status, output: settlement.output }, unwritten.events);\n  const ended = await database.write(",
    ],
    suites: ["test/http/cancel.test.ts", "test/engine/readers.test.ts"],
  },
  {
    name: "engine: a graph does not wait for its checkpoints",
    file: "src/agent-server/graph-hosts/inside/commit-points.ts",
    replace: ["return this.#userCodeRan(step) && this.#mayContinue(step);", "return false;"],
    suites: ["test/crash/durability.test.ts"],
  },
  {
    name: "reconciler: an earlier lease holder writes (no fence)",
    file: "src/control-plane/storage/leases.ts",
    replace: ['    .where("lease_epoch", "=", epoch)\n    .where("lease_holder"', '    .where("lease_holder"'],
    suites: ["test/control/leases.test.ts"],
  },
  {
    name: "reconciler: a transition ignores the current status",
    file: "src/control-plane/storage/revisions.ts",
    replace: ['.where("status", "=", from)', '.where("revision_id", "=", revision_id)'],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "reconciler: an interrupt reverts a switch of the traffic",
    file: "src/control-plane/reconcile/next-step.ts",
    replace: [" && rolloutId(each) !== uncommitted_switch", ' && uncommitted_switch !== ""'],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "reconciler: old instances of a redeployed revision count as new ones",
    file: "src/control-plane/reconcile/deployment-state.ts",
    replace: [" && revision.deploying_at === instance.rollout", ""],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "reconciler: an interrupt drains the live instances",
    file: "src/control-plane/rollout/switch-traffic.ts",
    replace: ['if (from === "DEPLOYING") await drain', "if (deploying_at !== null) await drain"],
    suites: ["test/control/reconciler.test.ts"],
  },
  {
    name: "reconciler: downtime of the reconciler counts for the deadline",
    file: "src/control-plane/rollout/rollout-step.ts",
    replace: [
      "Math.max(revision.deploying_at ?? 0, held_since)",
      "Math.max(revision.deploying_at ?? 0, held_since * 0)",
    ],
    suites: ["test/control/process.test.ts"],
  },
  {
    name: "reconciler: unknown instances are never stopped",
    file: "src/control-plane/cleanup/garbage-collection.ts",
    replace: ["!known.has(instance_id)", 'known.has("nobody")'],
    suites: ["test/control/process.test.ts"],
  },
  {
    name: "encryption: a secret decrypts in any row",
    file: "src/access/encryption/key-ring.ts",
    replace: ["tenant_id, table, row_id, column]));", "tenant_id, table, column]));"],
    suites: ["test/vault/key-ring.test.ts"],
  },
  {
    name: "encryption: the service starts without a key that the database needs",
    file: "src/access/encryption/open-key-ring.ts",
    replace: ["if (missing.length > 0) {", "if (missing.length < 0) {"],
    suites: ["test/vault/key-check.test.ts"],
  },
  {
    name: "encryption: a service encrypts with the old key after a rotation",
    file: "src/access/encryption/key-ring.ts",
    replace: ["    this.reloadIfChanged();\n    return sealWith(", "    return sealWith("],
    suites: ["test/vault/key-ring.test.ts"],
  },
  {
    name: "encryption: a rotation overwrites concurrent changes",
    file: "src/access/storage/encryption-keys.ts",
    replace: [` and \${text} = \${sealed}\``, "`"],
    suites: ["test/vault/sealed-columns.test.ts"],
  },
  {
    name: "fetch: a redirect sends credentials to another origin",
    file: "src/platform/lib/safe-fetch/safe-fetch.ts",
    replace: [" && !(crossOrigin && !PUBLIC_HEADERS.has(name))", ""],
    suites: ["test/lib/safe-fetch.test.ts"],
  },
  ...A2A_MUTANTS,
  ...THREAD_PROTOCOL_MUTANTS,
  ...AG_UI_MUTANTS,
  ...AUTH_SERVICE_MUTANTS,
  ...CUSTOM_AUTH_MUTANTS,
  ...FAULT_MUTANTS,
  ...FLOW_MUTANTS,
  ...GRAPH_TOKEN_MUTANTS,
  ...DEPLOYMENT_MUTANTS,
  ...DOCKER_MUTANTS,
  ...KUBERNETES_MUTANTS,
  ...ISOLATION_MUTANTS,
  ...ROLE_MUTANTS,
  ...ROLLOUT_MUTANTS,
  ...ROUTER_MUTANTS,
  {
    name: "access: pages of any origin use an open service",
    file: "src/app/origins.ts",
    replace: ['throw new ApiError("forbidden_origin"', 'if (!origin) throw new ApiError("forbidden_origin"'],
    suites: ["test/security/origins.test.ts"],
  },
  {
    name: "access: pages of loopback origins use the control plane of an open service",
    file: "src/app/origins.ts",
    replace: ["if (!isClosed && isPrivatePath(path)) return false;", ""],
    suites: ["test/security/origins.test.ts"],
  },
  {
    name: "access: requests of pages without an Origin header are accepted",
    file: "src/app/origins.ts",
    replace: ["if (origin === undefined && site === undefined)", "if (origin === undefined)"],
    suites: ["test/security/origins.test.ts"],
  },
  {
    name: "access: pages of a deleted deployment keep their access",
    file: "src/app/origins.ts",
    replace: [
      "if (!isClosed && isDeploymentHost && isPrivatePath(path)) return false;",
      "if (isDeploymentHost && !host) return false;",
    ],
    suites: ["test/security/origins.test.ts"],
  },
  {
    name: "deployments: the database role of a deployment is a superuser",
    file: "src/control-plane/storage/deployment-schema.ts",
    replace: ["login password", "superuser login password"],
    suites: ["test/security/deployment-roles.test.ts"],
  },
  {
    name: "access: a revoked key is accepted",
    file: "src/access/access.ts",
    replace: [" || row.revoked_at !== null", ""],
    suites: ["test/http/route-table.test.ts"],
  },
  {
    name: "access: the ID of a key is accepted without its secret",
    file: "src/access/access.ts",
    replace: ["!matchesDigest(text, row?.digest ?? DUMMY_DIGEST) || !row ||", "!row ||"],
    suites: ["test/http/route-table.test.ts"],
  },
  {
    name: "access: a key works in any workspace",
    file: "src/access/access.ts",
    replace: [
      "if (requested && parseWorkspaceId(requested) !== tenant_id)",
      "if (requested && !parseWorkspaceId(requested))",
    ],
    suites: ["test/http/route-table.test.ts"],
  },
  {
    name: "access: a running service ignores its first key",
    file: "src/access/access.ts",
    replace: ["this.#mayBeOpen && (await hasApiKeys(this.#database.read))", "this.#mayBeOpen && !this.#database.read"],
    suites: ["test/http/open-mode.test.ts"],
  },
  {
    name: "postgres: a change does not wait until the transaction has begun",
    file: "src/platform/database/postgres/postgres-pool.ts",
    replace: ['text.startsWith("select ") ? undefined : this.#begun', "undefined"],
    suites: ["test/storage/postgres-transactions.test.ts"],
  },
  {
    name: "postgres: later queries get free connections first",
    file: "src/platform/database/postgres/postgres-pool.ts",
    replace: ["const turn of this.#queue) {", "const turn of [...this.#queue].reverse()) {"],
    suites: ["test/engine/lost-connections.test.ts"],
  },
  {
    name: "postgres: a commit ignores a statement that failed",
    file: "src/platform/database/postgres/postgres-pool.ts",
    replace: ["Promise.all([this.answered(), ", "Promise.all(["],
    suites: ["test/storage/postgres-transactions.test.ts"],
  },
  {
    name: "postgres: statements that a newer process has outdated fail",
    file: "src/platform/database/postgres/postgres-pool.ts",
    replace: ['?? "") || isOutdated(error)', '?? "")'],
    suites: ["test/storage/added-columns.test.ts"],
  },
  {
    name: "loading: an import finds a folder",
    file: "src/agent-server/graph-hosts/inside/loading/resolution-cache.ts",
    replace: ["?.isFile()) return undefined", ") return undefined"],
    suites: ["test/lib/resolution-cache.test.ts"],
  },
  {
    name: "access: scopes are not checked",
    file: "src/access/http/auth.ts",
    replace: ["if (scope && !mayUse(caller, scope))", "if (scope && !caller)"],
    suites: ["test/http/route-table.test.ts"],
  },
  {
    name: "access: the audience of a JWT is not checked",
    file: "src/access/oidc-issuer.ts",
    replace: ["        audience,\n", ""],
    suites: ["test/http/jwt.test.ts"],
  },
  {
    name: "access: a stream goes on after its key was revoked",
    file: "src/platform/http/client-abort.ts",
    replace: ["onAccessEnd(abort)", "() => undefined"],
    suites: ["test/security/open-streams.test.ts"],
  },
  {
    name: "access: a stream goes on after its JWT has expired",
    file: "src/access/grant-watch.ts",
    replace: ["if (watched.grant.expires_at <= now)", "if (watched.grant.expires_at < 0)"],
    suites: ["test/security/open-streams.test.ts"],
  },
  {
    name: "graphs: client data can instantiate any class",
    file: "src/agent-server/graph-hosts/inside/serializer.ts",
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
    name: "access: searches return threads of other workspaces",
    file: "src/agent-server/storage/threads.ts",
    replace: ['    .where("tenant_id", "=", p("tenant_id"))\n    .where(isReadable),', "    .where(isReadable),"],
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
