import type { Command } from "@langchain/langgraph";
import type { WriteKey } from "../checkpoint-requests.ts";
import type { RunCommand } from "../host.ts";
import type { Library } from "./loading/library.ts";

/** Channel names of LangGraph, the same in all versions. */
const RESUME = "__resume__";
export const INTERRUPT = "__interrupt__";
export const TASKS = "__pregel_tasks";

/** The task to which LangGraph assigns the writes of a command. */
const NULL_TASK = "00000000-0000-0000-0000-000000000000";

export const isResume = ({ channel }: Pick<WriteKey, "channel">): boolean => channel === RESUME;

/** Whether a write is the resume value of a run, which the first node that interrupts consumes. */
export const isPendingResume = ({ task_id, channel }: WriteKey): boolean => channel === RESUME && task_id === NULL_TASK;

/** Whether a write is the copy of a resume value that a node has consumed. */
export const isConsumedResume = ({ task_id, channel }: WriteKey): boolean =>
  channel === RESUME && task_id !== NULL_TASK;

/** Converts the client's command to LangGraph's. `resume` may be any value, including null and false. */
export function toCommand({ resume, update, goto }: RunCommand, { langgraph }: Library): Command {
  const fields: ConstructorParameters<typeof Command>[0] = {};
  if (resume !== undefined) fields.resume = resume;
  if (update !== undefined && update !== null) fields.update = update as Record<string, unknown>;
  if (goto !== undefined && goto !== null) {
    fields.goto = [goto]
      .flat()
      .map((target) => (typeof target === "string" ? target : new langgraph.Send(target.node, target.input)));
  }
  return new langgraph.Command(fields);
}
