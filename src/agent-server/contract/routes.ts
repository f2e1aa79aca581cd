import { a2aRoutes } from "./a2a.ts";
import { agUiRoutes } from "./ag-ui.ts";
import { assistantRoutes } from "./assistants.ts";
import { cronRoutes } from "./crons.ts";
import { runRoutes, statelessRunRoutes } from "./runs.ts";
import { storeRoutes } from "./store.ts";
import { systemRoutes } from "./system.ts";
import { threadProtocolRoutes } from "./thread-protocol.ts";
import { threadStateRoutes } from "./thread-state.ts";
import { threadRoutes } from "./threads.ts";
import { uiRoutes } from "./ui.ts";
import { webhookRoutes } from "./webhooks.ts";

/** All routes of the agent server, by resource. */
export const agentServerRoutes = {
  system: systemRoutes,
  assistants: assistantRoutes,
  threads: { ...threadRoutes, ...threadStateRoutes },
  thread_protocol: threadProtocolRoutes,
  runs: { ...runRoutes, ...statelessRunRoutes },
  crons: cronRoutes,
  webhooks: webhookRoutes,
  store: storeRoutes,
  ui: uiRoutes,
  ag_ui: agUiRoutes,
  a2a: a2aRoutes,
};

/**
 * The agent server's OpenAPI document without its paths and schemas. `version` is the document's version, not Threadmill's version or the
 * API level.
 */
export const agentServerInfo = {
  openapi: "3.1.0",
  info: {
    title: "Threadmill agent server",
    version: "0.1.0",
    description:
      "Assistants, threads, runs and their streams. Every error has the body `{detail}`. Besides the listed errors, a " +
      "request can fail with 401 (missing or invalid key), 403 (not permitted), 413 (body too large), 429 (limit reached) or 503 (retry later). Unknown body " +
      "fields and query parameters are ignored; a body field that is null is treated as missing, except where null has its own meaning.",
  },
  tags: [
    { name: "Assistants", description: "Named configurations of graphs." },
    { name: "Threads", description: "Conversations: state, history, checkpoints." },
    {
      name: "Thread Protocol",
      description:
        "Version 2 of the streaming protocol. Clients send commands to a thread and receive the events of all its runs.",
    },
    { name: "Thread Runs", description: "Executions of an assistant on a thread." },
    {
      name: "Stateless Runs",
      description:
        "Executions of an assistant on a new thread. By default, this thread is hidden, and it is deleted when the run ends.",
    },
    { name: "Crons", description: "Runs on a schedule." },
    { name: "Webhooks", description: "Delivery of the requests that are sent to webhook URLs when runs end." },
    { name: "Store", description: "JSON objects shared by graphs and clients." },
    { name: "UI", description: "The project's React components, for use in web pages." },
    { name: "AG-UI", description: "Runs for clients of the AG-UI protocol, such as CopilotKit." },
    { name: "A2A", description: "Access to assistants over the Agent2Agent (A2A) protocol." },
    { name: "System", description: "Server health and version." },
  ],
};
