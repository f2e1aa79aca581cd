/** The interface of the agent server for other modules, besides its contract. */
export type { Assistants } from "./assistants/assistants.ts";
export type { DefaultAssistants } from "./assistants/default-assistants.ts";
export type { Crons } from "./crons/crons.ts";
export type { CustomEncryption } from "./encryption.ts";
export type { AppHost } from "./graph-hosts/app-host.ts";
export type { AppRoutes } from "./graph-hosts/host-http.ts";
export type { RunOverview } from "./runs/run-overview.ts";
export type { Store } from "./store/store.ts";
export type { ThreadStates } from "./threads/thread-states.ts";
export type { Threads } from "./threads/threads.ts";
export type { WebhookDeliveries } from "./webhooks/webhook-deliveries.ts";
