import type { Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { RunKwargs } from "../host.ts";
import { TASKS } from "./commands.ts";
import type { CompiledGraph } from "./loading/load.ts";

export interface CompletedStep {
  checkpoint_ns: string;
  checkpoint: Pick<Checkpoint, "channel_values" | "versions_seen">;
  metadata: Pick<CheckpointMetadata, "source">;
  changed: readonly string[];
}

/** Nodes that LangGraph adds. Their repetition has no visible effect. */
const INTERNAL_NODES = new Set(["__start__", "__input__", "__interrupt__"]);

/**
 * Decides when a run waits for the commit of its checkpoint. With durability "sync" a crash repeats at most one step of user code. Writes
 * are stored in order, so a root graph waits only if user code has run in the completed step and may run in the next one. The first two
 * checkpoints (input and `__start__`) and the last need no wait, which saves three of the five commits of a run with one node.
 */
export class CommitPoints {
  readonly #durability: RunKwargs["durability"];
  /** Channels that trigger nodes of the root graph. */
  readonly #triggers: ReadonlySet<string>;
  /** The channel versions that user nodes had seen when the run's input was stored. */
  #seenAtInput: string | undefined;

  constructor(durability: RunKwargs["durability"], { nodes }: Pick<CompiledGraph, "nodes">) {
    this.#durability = durability ?? "sync";
    this.#triggers = new Set(Object.values<{ triggers: string[] }>(nodes).flatMap(({ triggers }) => triggers));
  }

  /** Whether the run must wait until this checkpoint is committed. */
  mustWaitFor(step: CompletedStep): boolean {
    // With "async" and "exit" LangGraph waits only at the end of the run, which the service does anyway.
    if (this.#durability !== "sync") return false;
    if (step.checkpoint_ns !== "") return step.metadata.source !== "input";
    return this.#userCodeRan(step) && this.#mayContinue(step);
  }

  #userCodeRan({ checkpoint, metadata }: CompletedStep): boolean {
    const seenAtInput = this.#seenAtInput;
    if (metadata.source === "input") {
      this.#seenAtInput = versionsSeenByUserNodes(checkpoint);
      return false;
    }
    // After the input, only the first step can run without user code. In every later step, user code has run.
    this.#seenAtInput = undefined;
    return seenAtInput === undefined || seenAtInput !== versionsSeenByUserNodes(checkpoint);
  }

  /** Applies LangGraph's rule: another step follows if a changed channel that has a value triggers a node. */
  #mayContinue({ checkpoint, changed }: CompletedStep): boolean {
    return changed.some(
      (channel) => channel in checkpoint.channel_values && (channel === TASKS || this.#triggers.has(channel)),
    );
  }
}

/** Returns the channel versions that user nodes have seen, as text: equal before and after a step in which none of them ran. */
const versionsSeenByUserNodes = ({ versions_seen }: CompletedStep["checkpoint"]): string =>
  JSON.stringify(Object.entries(versions_seen).filter(([node]) => !INTERNAL_NODES.has(node)));
