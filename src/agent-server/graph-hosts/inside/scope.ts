import type { RunnableConfig } from "@langchain/core/runnables";
import type { CheckpointData, StagedUpdate } from "../host.ts";
import type { CommitPoints } from "./commit-points.ts";
import type { RunKey } from "./connection.ts";

/**
 * On whose behalf a graph is used. It travels in `configurable`, which LangGraph hands on to every call of the
 * checkpointer, also from subgraphs; keys that start with two underscores never reach metadata or events.
 */
export interface Scope {
  /** The run that writes; absent for questions. */
  run?: RunKey;
  /** The thread's newest root checkpoint, until it is used or the run has written its own. */
  head?: { data: CheckpointData | null };
  /** Where the run waits for the database. */
  commits?: CommitPoints;
  /** The plain answer that is stored beside the checkpoint it started from has been given, by this run or one before it. */
  answered?: boolean;
  /**
   * A state is only looked at or changed: answers are not to be seen. LangGraph takes one that a node was given for something that
   * the node has written, and the node for done, although it may have asked the next question.
   */
  withoutAnswers?: boolean;
  /** A run whose checkpoints and writes are not to be seen. */
  without?: string;
  /** Metadata for every checkpoint written. */
  metadata: Record<string, unknown>;
  /** Where the checkpoints of a state update are gathered instead of being stored one by one. */
  staged?: Pick<StagedUpdate, "puts" | "writes">;
}

const SCOPE = "__threadmill_scope";

/** `configurable` with the scope in it. */
export const withScope = (configurable: Record<string, unknown>, scope: Scope): Record<string, unknown> => ({
  ...configurable,
  [SCOPE]: scope,
});

/** `configurable` with the scope of `config`, if that has one: for configs that LangGraph will come back with. */
export function keepScope(config: RunnableConfig, configurable: Record<string, unknown>): Record<string, unknown> {
  const scope = config.configurable?.[SCOPE] as Scope | undefined;
  return scope ? withScope(configurable, scope) : configurable;
}

export const scopeOf = (config: RunnableConfig): Scope =>
  (config.configurable?.[SCOPE] as Scope | undefined) ?? { metadata: {} };

/** Configurable keys that are LangGraph's own or ours; they do not belong in metadata. */
const BOOKKEEPING = new Set(["checkpoint_ns", "checkpoint_id", "checkpoint_map", "run_id", "thread_id"]);

/** The part of `configurable` that belongs into checkpoint metadata: no bookkeeping, nothing of the caller's identity. */
export function describedBy(configurable: Record<string, unknown> = {}): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(configurable).filter(
      ([key]) => !key.startsWith("__") && !key.startsWith("langgraph_auth_") && !BOOKKEEPING.has(key),
    ),
  );
}
