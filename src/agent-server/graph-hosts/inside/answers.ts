import type { WriteKey } from "../host.ts";

/** LangGraph's names of channels: part of what is stored, so the same in all versions. */
const RESUME = "__resume__";
export const INTERRUPT = "__interrupt__";
export const TASKS = "__pregel_tasks";

/** The task that LangGraph files a command under. */
const NULL_TASK = "00000000-0000-0000-0000-000000000000";

/** Any answer, given or not. */
export const isAnyAnswer = ({ channel }: Pick<WriteKey, "channel">): boolean => channel === RESUME;

/** The answer of a run as it came in, for whichever node asks first. */
export const isAnswer = ({ task_id, channel }: WriteKey): boolean => channel === RESUME && task_id === NULL_TASK;

/** The copy of an answer that a node has taken. */
export const isGivenAnswer = ({ task_id, channel }: WriteKey): boolean => channel === RESUME && task_id !== NULL_TASK;
