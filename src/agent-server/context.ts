import type { Caller } from "../platform/contract/caller.ts";
import type { Database, Tx } from "../platform/database/database.ts";
import { ApiError } from "../platform/errors.ts";
import type { CustomAuth } from "./auth/custom-auth.ts";
import type { Engine } from "./engine/index.ts";
import { type GraphCatalog, languageMismatch } from "./graph-catalog.ts";
import type { GraphQuery } from "./graph-hosts/host.ts";
import { queryFailure } from "./graph-hosts/query-host.ts";
import type { TypeSchemaReader } from "./graph-hosts/type-schemas/reader.ts";
import { findLanguage } from "./storage/checkpoints/checkpoints.ts";
import { hasPendingRuns } from "./storage/runs.ts";
import type { ThreadTtl } from "./storage/threads.ts";
import type { WebhookPolicy } from "./webhooks/webhook-policy.ts";

/** Limits of the runs of a workspace, and of each of its users; undefined if they are not limited. */
export interface RunLimits {
  per_workspace: number | undefined;
  per_user: number | undefined;
}

export interface AgentContext {
  database: Database;
  engine: Engine;
  catalog: GraphCatalog;
  type_schemas: TypeSchemaReader;
  webhooks: WebhookPolicy;
  /** Undefined if the project has no authentication handler. */
  auth: CustomAuth | undefined;
  /** Default time to live of threads: `checkpointer.ttl` in langgraph.json. */
  thread_ttl: Partial<ThreadTtl>;
  /** Maximum numbers of pending runs. */
  max_pending: RunLimits;
}

/** @throws ApiError graph_not_found, graph_unavailable, graph_failed; unavailable if no host is responding */
export async function queryGraph<Q extends GraphQuery>({ engine, catalog, database }: AgentContext, query: Q) {
  const { graph_id } = query.graph;
  catalog.require(graph_id);
  if ("checkpoint" in query) await requireLanguage(database.read, catalog, query.checkpoint.thread_id, graph_id);
  try {
    return await engine.reader.query(query);
  } catch (error) {
    throw queryFailure(error);
  }
}

/**
 * LangGraph cannot read the checkpoints of the other language. Projects with JavaScript graphs only are not checked: their threads have no
 * other checkpoints.
 *
 * @throws ApiError language_mismatch
 */
export async function requireLanguage(
  tx: Tx,
  catalog: GraphCatalog,
  thread_id: string,
  graph_id: string,
): Promise<void> {
  if (catalog.graphs.every(({ language }) => language === "js")) return;
  const language = catalog.languageOf(graph_id);
  const written = await findLanguage(tx, thread_id);
  if (language && written && language !== written) throw languageMismatch(written, graph_id, language);
}

/**
 * Rejects a run of a user or a workspace that has reached its limit of pending runs.
 *
 * @throws ApiError too_many_pending
 */
export async function requireQueueSpace(tx: Tx, { tenant_id, user_id }: Caller, max: RunLimits): Promise<void> {
  const { per_workspace, per_user } = max;
  const setting = "THREADMILL_MAX_PENDING_RUNS";
  if (per_workspace !== undefined && (await hasPendingRuns(tx, { tenant_id, count: per_workspace })))
    throw new ApiError("too_many_pending", { owner: "The workspace", max: per_workspace, setting });
  if (per_user !== undefined && (await hasPendingRuns(tx, { tenant_id, user_id, count: per_user })))
    throw new ApiError("too_many_pending", {
      owner: `The user ${user_id}`,
      max: per_user,
      setting: `${setting}_PER_USER`,
    });
}
