/** What other modules use of the agent server, besides its contract. */
export type { Assistants } from "./assistants.ts";
export type { DefaultAssistants } from "./default-assistants.ts";
export type { RunOverview } from "./run-overview.ts";
export type { ThreadStates } from "./thread-states.ts";
export type { Threads } from "./threads.ts";
