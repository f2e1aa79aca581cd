import type { ThreadState, ThreadTask } from "../../../../src/agent-server/contract/records.ts";

/** What a state still has to do: tasks that brought nothing yet. Those of a past state may have been done since, or dropped. */
export const openTasks = ({ tasks }: ThreadState): readonly ThreadTask[] =>
  tasks.filter(({ result }) => result === undefined || result === null);
