/**
 * The protocol between the service and a graph host, which executes user graphs. A host is a worker thread or the
 * serving thread itself (`--inline`); the protocol passes only plain data. The host serializes graph values to JSON
 * text, which the service passes on without parsing.
 */

/** A graph to load. See GraphSpec in config.ts. */
export interface GraphToLoad {
  graph_id: string;
  file: string;
  export_name: string;
}

/** The start parameters of a host. */
export interface HostSetup {
  graphs: readonly GraphToLoad[];
  env: Readonly<Record<string, string>>;
  project_dir: string;
}

/** A run to execute. Its JSON comes from the client and was merged and checked by run-request.ts. */
export interface RunOrder {
  run_id: string;
  epoch: number;
  attempt: number;
  thread_id: string;
  assistant_id: string;
  graph_id: string;
  kwargs: RunKwargs;
}

/** The parameters of a run, as they are stored in its record. */
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

/** The result of a run in its host. */
export interface HostOutcome {
  ended: "success" | "interrupted" | "error" | "aborted" | "drained";
  /** The response of wait and join, as JSON text. */
  output: string;
  state: StateSummary | undefined;
  error: { error: string; message: string } | undefined;
}

/** The state fields of a thread's record. */
export interface StateSummary {
  /** JSON text. */
  values: string;
  next: string[];
  /** `{task_id: [interrupt]}` as JSON text. */
  interrupts: string;
}

/** A checkpoint with its channel values and pending writes. The fields are columns of the tables. */
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
  /** The order in which the tasks of a step are applied; empty where LangGraph sets none. */
  task_path: string;
  idx: number;
  channel: string;
  type: string;
  value: string;
}

/** Identifies a write by task and channel. */
export type WriteKey = Pick<WriteData, "task_id" | "channel">;

export interface CheckpointFilter {
  /** Default: all threads. LangGraph's interface permits it, but the service refuses it. */
  thread_id?: string;
  checkpoint_ns?: string;
  checkpoint_id?: string;
  /** Only checkpoints older than this one. */
  before?: string;
  /** Must be contained in the metadata, also nested. */
  metadata?: object;
  limit: number;
}

/** Requests of a host's checkpointer. */
export type CheckpointRequest =
  /** `without`: ignores the writes of this run. */
  | { op: "get"; thread_id: string; checkpoint_ns: string; checkpoint_id?: string; without?: string }
  | ({ op: "list" } & CheckpointFilter)
  | { op: "put"; checkpoint: NewCheckpointData }
  | { op: "delete_thread"; thread_id: string }
  | { op: "put_writes"; thread_id: string; checkpoint_ns: string; checkpoint_id: string; writes: WriteData[] };

/** A request by a run's graph for a token. The user is taken from the record of the run, not from the graph. */
export interface TokenRequest {
  op: "token";
  /** The `provider_id` in the workspace of the run. */
  provider: string;
  scopes: string[];
  /** Whether the token is for the run's assistant, or for the user. */
  agent_scoped: boolean;
  token_id?: string;
}

/** An access token, or the URL at which the user can grant one. The token is not stored on its way to the graph. */
export type TokenAnswer = { token: string } | { auth_url: string };

/** An HTTP request by a run's graph to this server. The host assigns `id`. A response body is read chunk by chunk. */
export type FetchRequest =
  | {
      op: "fetch";
      id: number;
      method: string;
      /** Path and query, without the prefix under which the service is mounted. */
      path: string;
      headers: [name: string, value: string][];
      body?: Uint8Array;
    }
  | { op: "fetch_read"; id: number }
  /** The response is no longer needed. */
  | { op: "fetch_cancel"; id: number };

/** Status and headers of a response. */
export interface FetchAnswer {
  status: number;
  headers: [name: string, value: string][];
  has_body: boolean;
}

/** A request of a host to the service. */
export type HostRequest = CheckpointRequest | TokenRequest | FetchRequest;

export type LogLevel = "debug" | "info" | "warn" | "error";

/** A write that a run sends without waiting for the result. Later messages of the run follow it. */
export type CheckpointWrite = Extract<CheckpointRequest, { op: "put" | "put_writes" }>;

/** A query that a host executes outside of runs, because only hosts have the graph objects. */
export type GraphQuery =
  /** `select` limits the state to some parts; see selectState. */
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
  /** `without`: ignores the writes of this run. */
  | { kind: "summary"; graph: GraphInUse; checkpoint: CheckpointKey; without?: string }
  | { kind: "update"; graph: GraphInUse; checkpoint: CheckpointKey; supersteps: StateUpdate[][] }
  | { kind: "drawing"; graph: GraphInUse; xray: boolean | number }
  | { kind: "schemas"; graph: GraphInUse }
  | { kind: "subgraphs"; graph: GraphInUse; namespace?: string; recurse: boolean };

export type JsonSchema = Record<string, unknown>;

/** A schema that a graph declares at run time. */
export interface GraphSchema {
  schema: JsonSchema | null;
  /** False if the schema contains only the names of the keys. */
  is_whole: boolean;
}

/** JavaScript graphs declare a common schema for config and context. */
export type GraphSchemas = Record<"input" | "output" | "state" | "config", GraphSchema>;

/** A graph, and the config for its factory. */
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

/** The result of a history query: as many states, newest first, as fit in a message. */
export interface HistoryPage {
  /** JSON texts separated by commas. Bytes pass through the service without a copy. */
  states: Uint8Array<ArrayBuffer>;
  count: number;
  /** The checkpoint before which the next page starts; absent on the last page. */
  before?: string;
}

/** The result of an update query: the rows that the service stores in one transaction, and the resulting state. */
export interface StagedUpdate {
  /** The newest checkpoint when the update was computed. */
  base: string | undefined;
  checkpoint: CheckpointKey;
  puts: NewCheckpointData[];
  writes: { thread_id: string; checkpoint_ns: string; checkpoint_id: string; writes: WriteData[] }[];
  state: StateSummary;
}

/** A message from the service to a host. */
export type ToHost =
  /**
   * `head`: the thread's newest root checkpoint, or null, which saves the run its first request. `prior_writes`: the writes of
   * an earlier claim of the run on the checkpoint that it starts from.
   */
  | { type: "start"; order: RunOrder; head: CheckpointData | null; prior_writes: WriteKey[] }
  | { type: "abort"; run_id: string; epoch: number; reason: AbortReason }
  /** Stop after the current step. The run continues in another process. */
  | { type: "drain"; run_id: string; epoch: number }
  | { type: "query"; id: number; query: GraphQuery }
  | { type: "reply"; id: number; value?: unknown; error?: { name: string; message: string } }
  | { type: "ping"; id: number };

/** A message from a host to the service. */
export type FromHost =
  /** All graphs are loaded or have failed. */
  | { type: "loaded"; failures: Record<string, string>; warnings: string[] }
  | { type: "started"; run_id: string; epoch: number }
  | { type: "events"; run_id: string; epoch: number; events: [event: string, data: string][] }
  | { type: "done"; run_id: string; epoch: number; outcome: HostOutcome }
  /** `run` is absent if the request belongs to a query. */
  | { type: "request"; id: number; run?: { run_id: string; epoch: number }; request: HostRequest }
  /** A write without a reply. If it fails, no later write of the run is stored. */
  | { type: "store"; run_id: string; epoch: number; write: CheckpointWrite }
  /** A line for the service's log. `fields` is a JSON object. `run` is absent while modules are loaded. */
  | { type: "log"; run?: { run_id: string; epoch: number }; level: LogLevel; message: string; fields: string }
  /** `value` is JSON text or a StagedUpdate. */
  | { type: "query_result"; id: number; value?: unknown; error?: { name: string; message: string } }
  | { type: "pong"; id: number };

/** A running host. */
export interface GraphHost {
  send(message: ToHost): void;
  /** Terminates the host immediately. */
  terminate(): Promise<void>;
}

export interface HostListener {
  onMessage(message: FromHost): void;
  /** Called when the host ends without {@link GraphHost.terminate}. */
  onExit(reason: string): void;
}

/** Starts a host, which sends "loaded" when its graphs are loaded. */
export type StartHost = (setup: HostSetup, listener: HostListener) => GraphHost;
