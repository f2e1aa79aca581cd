/**
 * The messages between the service and a graph host. A host is where users' graphs run: a worker thread, or
 * the serving thread itself (`--inline`); anything that can pass plain data could be one. Values of the graph
 * cross as JSON text that the host has serialised, so the service passes them on unread.
 */

/** A graph to load; see GraphSpec in config.ts. */
export interface GraphToLoad {
  graph_id: string;
  file: string;
  export_name: string;
}

/** What a host is started with. */
export interface HostSetup {
  graphs: readonly GraphToLoad[];
  env: Readonly<Record<string, string>>;
  project_dir: string;
}

/** A run to execute. All JSON in it is the client's, merged and checked by agents/runs.ts. */
export interface RunOrder {
  run_id: string;
  epoch: number;
  attempt: number;
  thread_id: string;
  assistant_id: string;
  graph_id: string;
  kwargs: RunKwargs;
}

/** What was asked for, as it is stored in the run's record. */
export interface RunKwargs {
  input: unknown;
  command?: RunCommand | null;
  config: RunConfig;
  context?: Record<string, unknown> | null;
  stream_mode: string[];
  subgraphs: boolean;
  interrupt_before?: "*" | string[] | null;
  interrupt_after?: "*" | string[] | null;
  durability?: "sync" | "async" | "exit" | null;
  [other: string]: unknown;
}

export interface RunConfig {
  tags?: string[];
  recursion_limit?: number;
  configurable?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  [other: string]: unknown;
}

export interface RunCommand {
  resume?: unknown;
  update?: unknown;
  goto?: Destination | Destination[];
}
type Destination = string | { node: string; input?: unknown };

export type AbortReason = "cancelled" | "lease_lost" | "timeout";

/** How a run ended in its host. */
export interface HostOutcome {
  ended: "success" | "interrupted" | "error" | "aborted" | "drained";
  /** The answer of wait and join, as JSON text. */
  output: string;
  state: StateSummary | undefined;
  error: { error: string; message: string } | undefined;
}

/** What a thread's record says of its state. */
export interface StateSummary {
  /** JSON text. */
  values: string;
  next: string[];
  /** `{task_id: [interrupt]}` as JSON text. */
  interrupts: string;
}

/** A checkpoint with its contents, as stored. The columns are those of storage/checkpoints.ts. */
export interface CheckpointData {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  checkpoint: string;
  metadata: string;
  values: ValueData[];
  writes: WriteData[];
}
export type NewCheckpointData = Omit<CheckpointData, "writes">;
export interface ValueData {
  channel: string;
  version: string;
  type: string;
  value: string;
}
export interface WriteData {
  task_id: string;
  /** Orders the tasks of a step as they were applied; empty where LangGraph names none. */
  task_path: string;
  idx: number;
  channel: string;
  type: string;
  value: string;
}

/** Which write: of what task, to what channel. */
export type WriteKey = Pick<WriteData, "task_id" | "channel">;

/** What the checkpointer of a host asks of the service. */
export type CheckpointRequest =
  /** `without`: as if this run had never written anything. */
  | { op: "get"; thread_id: string; checkpoint_ns: string; checkpoint_id?: string; without?: string }
  | {
      op: "list";
      /** Absent: of all threads. The service answers that to nobody; LangGraph's contract knows it. */
      thread_id?: string;
      checkpoint_ns?: string;
      checkpoint_id?: string;
      before?: string;
      metadata?: object;
      limit: number;
    }
  | { op: "put"; checkpoint: NewCheckpointData }
  | { op: "delete_thread"; thread_id: string }
  | { op: "put_writes"; thread_id: string; checkpoint_ns: string; checkpoint_id: string; writes: WriteData[] };

/** What the graph of a run asks in the name of the run's user: who that is says the run's record, not the graph. */
export interface TokenRequest {
  op: "token";
  /** Which provider, by the `provider_id` of its workspace. */
  provider: string;
  scopes: string[];
  /** Whether it is the run's assistant that asks, or the user alone. */
  agent_scoped: boolean;
  token_id?: string;
}

/** An access token, or where to send the user for one. The token is written nowhere on its way to the graph. */
export type TokenAnswer = { token: string } | { auth_url: string };

/** A request to this server by the graph of a run; `id` is the host's. A body is read chunk by chunk. */
export type FetchRequest =
  | {
      op: "fetch";
      id: number;
      method: string;
      /** With the query; without the prefix under which the service may be mounted. */
      path: string;
      headers: [name: string, value: string][];
      body?: Uint8Array;
    }
  | { op: "fetch_read"; id: number }
  /** The response is not wanted any more. */
  | { op: "fetch_cancel"; id: number };

/** The head of a response. */
export interface FetchAnswer {
  status: number;
  headers: [name: string, value: string][];
  has_body: boolean;
}

/** What a host asks of the service. */
export type HostRequest = CheckpointRequest | TokenRequest | FetchRequest;

export type LogLevel = "debug" | "info" | "warn" | "error";

/** What a run stores without waiting for an answer: whatever it says later lies behind it. */
export type CheckpointWrite = Extract<CheckpointRequest, { op: "put" | "put_writes" }>;

/** What the service asks of a host outside of runs: only there the graph object lives. */
export type Question =
  /** `select`: parts of the state, see selectState. */
  | { kind: "state"; graph: GraphInUse; checkpoint: CheckpointKey; subgraphs: boolean; select?: readonly string[] }
  | {
      kind: "history";
      graph: GraphInUse;
      checkpoint: CheckpointKey;
      before?: string;
      metadata?: object;
      limit: number;
      select?: readonly string[];
    }
  /** `without`: as if this run had never written anything. */
  | { kind: "summary"; graph: GraphInUse; checkpoint: CheckpointKey; without?: string }
  | { kind: "update"; graph: GraphInUse; checkpoint: CheckpointKey; supersteps: StateUpdate[][] }
  | { kind: "drawing"; graph: GraphInUse; xray: boolean | number }
  | { kind: "schemas"; graph: GraphInUse }
  | { kind: "subgraphs"; graph: GraphInUse; namespace?: string; recurse: boolean };

export type JsonSchema = Record<string, unknown>;

/** What the running graph says of one of its schemas. */
export interface GraphSchema {
  schema: JsonSchema | null;
  /** Otherwise it has the names of the keys alone. */
  is_whole: boolean;
}

/** JavaScript graphs declare one schema for config and context. */
export type GraphSchemas = Record<"input" | "output" | "state" | "config", GraphSchema>;

/** Which graph, and the config a factory builds it with. */
export interface GraphInUse {
  graph_id: string;
  config: RunConfig;
  context?: Record<string, unknown> | null;
}

export interface CheckpointKey {
  thread_id: string;
  checkpoint_ns?: string;
  checkpoint_id?: string;
}

export interface StateUpdate {
  values?: unknown;
  command?: RunCommand | null;
  as_node?: string | null;
}

/** The answer to a "history": as many states, newest first, as one message should carry. */
export interface HistoryPage {
  /** JSON texts with commas between them. As bytes they pass the service without a copy. */
  states: Uint8Array<ArrayBuffer>;
  count: number;
  /** The checkpoint before which the next page begins; absent: there is no more. */
  before?: string;
}

/** The answer to an "update": rows that the service stores in one transaction, and the state they make. */
export interface StagedUpdate {
  /** The newest checkpoint that the update was based on. */
  base: string | undefined;
  checkpoint: CheckpointKey;
  puts: NewCheckpointData[];
  writes: { thread_id: string; checkpoint_ns: string; checkpoint_id: string; writes: WriteData[] }[];
  state: StateSummary;
}

/** From the service to a host. */
export type ToHost =
  /**
   * `head`: the thread's newest root checkpoint (null: there is none), which saves the run its first question. `begun`: what
   * an earlier claim of the run has written on the checkpoint that it starts from.
   */
  | { type: "start"; order: RunOrder; head: CheckpointData | null; begun: WriteKey[] }
  | { type: "abort"; run_id: string; epoch: number; reason: AbortReason }
  /** Stop at the next step boundary; the run will go on elsewhere. */
  | { type: "drain"; run_id: string; epoch: number }
  | { type: "ask"; id: number; question: Question }
  | { type: "reply"; id: number; value?: unknown; error?: { name: string; message: string } }
  | { type: "ping"; id: number };

/** From a host to the service. */
export type FromHost =
  /** Graphs are loaded, or could not be. */
  | { type: "loaded"; failures: Record<string, string>; warnings: string[] }
  | { type: "started"; run_id: string; epoch: number }
  | { type: "events"; run_id: string; epoch: number; events: [event: string, data: string][] }
  | { type: "done"; run_id: string; epoch: number; outcome: HostOutcome }
  /** `run` is absent when the request belongs to a question. */
  | { type: "request"; id: number; run?: { run_id: string; epoch: number }; request: HostRequest }
  /** Like a request to store, but nobody waits: when it cannot be stored, nothing that the run says later is. */
  | { type: "store"; run_id: string; epoch: number; write: CheckpointWrite }
  /** A line for the service's log; `fields` is a JSON object. `run` is absent while modules are loaded. */
  | { type: "log"; run?: { run_id: string; epoch: number }; level: LogLevel; message: string; fields: string }
  /** `value` is JSON text, or a StagedUpdate. */
  | { type: "answer"; id: number; value?: unknown; error?: { name: string; message: string } }
  | { type: "pong"; id: number };

/** A running host, seen from the service. */
export interface GraphHost {
  send(message: ToHost): void;
  /** Ends the host at once, whatever it is doing. */
  terminate(): Promise<void>;
}

export interface HostListener {
  onMessage(message: FromHost): void;
  /** The host is gone without having been asked to go. */
  onExit(reason: string): void;
}

/** Starts a host; it answers "loaded" when its graphs are there. */
export type StartHost = (setup: HostSetup, listener: HostListener) => GraphHost;
