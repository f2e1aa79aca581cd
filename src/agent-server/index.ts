/** The interface of the agent server for other modules, besides its contract. */
export type { Assistants } from "./assistants/assistants.ts";
export type { DefaultAssistants } from "./assistants/default-assistants.ts";
export type { RunOverview } from "./runs/run-overview.ts";
export type { ThreadStates } from "./threads/thread-states.ts";
export type { Threads } from "./threads/threads.ts";
