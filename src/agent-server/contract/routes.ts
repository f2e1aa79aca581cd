import { assistantRoutes } from "./assistants.ts";
import { runRoutes, statelessRunRoutes } from "./runs.ts";
import { systemRoutes } from "./system.ts";
import { threadStateRoutes } from "./thread-state.ts";
import { threadRoutes } from "./threads.ts";

/** All routes of the agent server, by resource. */
export const agentServerRoutes = {
  system: systemRoutes,
  assistants: assistantRoutes,
  threads: { ...threadRoutes, ...threadStateRoutes },
  runs: { ...runRoutes, ...statelessRunRoutes },
};

/**
 * Head of the agent server's OpenAPI document. `version` is the document's version, not Threadmill's version or the API
 * level.
 */
export const agentServerInfo = {
  openapi: "3.1.0",
  info: {
    title: "Threadmill agent server",
    version: "0.1.0",
    description:
      "Assistants, threads, runs and their streams. Every error has the body `{detail}`. Besides the listed errors, a " +
      "request can fail with 401 (missing or invalid key), 413 (body too large) or 503 (retry later). Unknown body " +
      "fields and query parameters are ignored; a body field that is null is treated as missing.",
  },
  tags: [
    { name: "Assistants", description: "Graphs with a configuration and a name." },
    { name: "Threads", description: "Conversations: state, history, checkpoints." },
    { name: "Thread Runs", description: "Executions of an assistant on a thread." },
    { name: "Stateless Runs", description: "Executions without a thread." },
    { name: "System", description: "The server itself." },
  ],
};
