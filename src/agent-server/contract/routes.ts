import * as assistants from "./assistants.ts";
import * as runs from "./runs.ts";
import * as system from "./system.ts";
import * as threads from "./threads.ts";

/** All routes of the agent server, by resource. The comments repeat method and path. */
export const agentServerRoutes = {
  system: {
    ok: system.ok, // GET /ok
    info: system.info, // GET /info
  },
  assistants: {
    createAssistant: assistants.createAssistant, // POST /assistants
    searchAssistants: assistants.searchAssistants, // POST /assistants/search
    countAssistants: assistants.countAssistants, // POST /assistants/count
    getAssistant: assistants.getAssistant, // GET /assistants/{assistant_id}
    patchAssistant: assistants.patchAssistant, // PATCH /assistants/{assistant_id}
    deleteAssistant: assistants.deleteAssistant, // DELETE /assistants/{assistant_id}
    getAssistantGraph: assistants.getAssistantGraph, // GET /assistants/{assistant_id}/graph
    getAssistantSchemas: assistants.getAssistantSchemas, // GET /assistants/{assistant_id}/schemas
    getAssistantSubgraphs: assistants.getAssistantSubgraphs, // GET /assistants/{assistant_id}/subgraphs
    getAssistantSubgraphsAt: assistants.getAssistantSubgraphsAt, // GET /assistants/{assistant_id}/subgraphs/{namespace}
    listAssistantVersions: assistants.listAssistantVersions, // POST /assistants/{assistant_id}/versions
    setLatestAssistantVersion: assistants.setLatestAssistantVersion, // POST /assistants/{assistant_id}/latest
  },
  threads: {
    createThread: threads.createThread, // POST /threads
    searchThreads: threads.searchThreads, // POST /threads/search
    countThreads: threads.countThreads, // POST /threads/count
    getThread: threads.getThread, // GET /threads/{thread_id}
    patchThread: threads.patchThread, // PATCH /threads/{thread_id}
    deleteThread: threads.deleteThread, // DELETE /threads/{thread_id}
    copyThread: threads.copyThread, // POST /threads/{thread_id}/copy
    streamThread: threads.streamThread, // GET /threads/{thread_id}/stream
    getThreadState: threads.getThreadState, // GET /threads/{thread_id}/state
    getThreadStateAt: threads.getThreadStateAt, // GET /threads/{thread_id}/state/{checkpoint_id}
    getThreadStateAtCheckpoint: threads.getThreadStateAtCheckpoint, // POST /threads/{thread_id}/state/checkpoint
    updateThreadState: threads.updateThreadState, // POST /threads/{thread_id}/state
    getThreadHistory: threads.getThreadHistory, // GET /threads/{thread_id}/history
    postThreadHistory: threads.postThreadHistory, // POST /threads/{thread_id}/history
  },
  runs: {
    createRun: runs.createRun, // POST /threads/{thread_id}/runs
    createRunStream: runs.createRunStream, // POST /threads/{thread_id}/runs/stream
    createRunWait: runs.createRunWait, // POST /threads/{thread_id}/runs/wait
    listRuns: runs.listRuns, // GET /threads/{thread_id}/runs
    getRun: runs.getRun, // GET /threads/{thread_id}/runs/{run_id}
    deleteRun: runs.deleteRun, // DELETE /threads/{thread_id}/runs/{run_id}
    joinRun: runs.joinRun, // GET /threads/{thread_id}/runs/{run_id}/join
    joinRunStream: runs.joinRunStream, // GET /threads/{thread_id}/runs/{run_id}/stream
    cancelRun: runs.cancelRun, // POST /threads/{thread_id}/runs/{run_id}/cancel
    cancelRuns: runs.cancelRuns, // POST /runs/cancel
    createStatelessRun: runs.createStatelessRun, // POST /runs
    createStatelessRunStream: runs.createStatelessRunStream, // POST /runs/stream
    createStatelessRunWait: runs.createStatelessRunWait, // POST /runs/wait
    createRunBatch: runs.createRunBatch, // POST /runs/batch
    joinStatelessRun: runs.joinStatelessRun, // GET /runs/{run_id}/join
    joinStatelessRunStream: runs.joinStatelessRunStream, // GET /runs/{run_id}/stream
  },
} as const;

/** Head of the agent server's OpenAPI document. The version is that of the document, not of the program or the API level. */
export const agentServerInfo = {
  openapi: "3.1.0",
  info: {
    title: "Threadmill agent server",
    version: "0.1.0",
    description:
      "Assistants, threads, runs and their streams. Every error has the body `{detail}`. Besides the listed errors, a " +
      "request can fail with 401 (missing or invalid key), 413 (body too large) or 503 (retry later). Unknown body " +
      "fields and query parameters are ignored; a body field that is null counts as missing.",
  },
  tags: [
    { name: "Assistants", description: "Graphs with a configuration and a name." },
    { name: "Threads", description: "Conversations: state, history, checkpoints." },
    { name: "Thread Runs", description: "Executions of an assistant on a thread." },
    { name: "Stateless Runs", description: "Executions without a thread." },
    { name: "System", description: "The server itself." },
  ],
};
