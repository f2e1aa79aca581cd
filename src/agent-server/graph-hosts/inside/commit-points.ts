import type { Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { RunKwargs } from "../host.ts";
import { TASKS } from "./answers.ts";
import type { CompiledGraph } from "./loading/load.ts";

/** What a checkpoint says of the step that it ends. */
export interface EndedStep {
  checkpoint_ns: string;
  checkpoint: Pick<Checkpoint, "channel_values" | "versions_seen">;
  metadata: Pick<CheckpointMetadata, "source">;
  /** The channels that the step has changed. */
  changed: readonly string[];
}

/** Nodes that LangGraph adds itself; running one again does nothing that anybody could see. */
const INTERNAL_NODES = new Set(["__start__", "__input__", "__interrupt__"]);

/**
 * When a run waits until its checkpoint is committed. Everything that a run writes travels in one queue, so what is
 * committed is always a prefix of what happened; waiting only decides how long that prefix is at least. Durability
 * "sync" promises that a crash makes at most one step of users' code run again. So a checkpoint is waited for when
 * users' code has run in the step before it and may run in the step behind it. The first two checkpoints of a run (its
 * input, and `__start__`) and its last need no waiting, which saves a run of one node three of its five commits.
 */
export class CommitPoints {
  readonly #durability: RunKwargs["durability"];
  /** The channels that set off nodes of the root graph. */
  readonly #triggers: ReadonlySet<string>;
  /** What each node of the root graph had seen when the run's input was taken in. */
  #seenAtInput: string | undefined;

  constructor(durability: RunKwargs["durability"], { nodes }: Pick<CompiledGraph, "nodes">) {
    this.#durability = durability ?? "sync";
    this.#triggers = new Set(Object.values<{ triggers: string[] }>(nodes).flatMap(({ triggers }) => triggers));
  }

  /** Whether the run must not go on before this checkpoint is committed. */
  mustWaitFor(step: EndedStep): boolean {
    // With "async" and "exit" LangGraph waits at the end of the run only, and the service does that by itself.
    if (this.#durability !== "sync") return false;
    if (step.checkpoint_ns !== "") return step.metadata.source !== "input";
    return this.#usersCodeRan(step) && this.#mayGoOn(step);
  }

  #usersCodeRan({ checkpoint, metadata }: EndedStep): boolean {
    const seenAtInput = this.#seenAtInput;
    if (metadata.source === "input") {
      this.#seenAtInput = seenByUsers(checkpoint);
      return false;
    }
    // Only the first step after the input can be LangGraph's own.
    this.#seenAtInput = undefined;
    return seenAtInput === undefined || seenAtInput !== seenByUsers(checkpoint);
  }

  /** LangGraph's own rule: a step follows when a changed channel that holds something sets off a node. */
  #mayGoOn({ checkpoint, changed }: EndedStep): boolean {
    return changed.some(
      (channel) => channel in checkpoint.channel_values && (channel === TASKS || this.#triggers.has(channel)),
    );
  }
}

/** What users' nodes had seen, as text: equal before and after a step in which none of them ran. */
const seenByUsers = ({ versions_seen }: EndedStep["checkpoint"]): string =>
  JSON.stringify(Object.entries(versions_seen).filter(([node]) => !INTERNAL_NODES.has(node)));
