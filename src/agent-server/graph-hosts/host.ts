/**
 * The protocol between the service and a graph host: a worker thread, or the serving thread itself (`--inline`), that executes user graphs.
 * It passes only plain data. The host serializes graph values to JSON text, which the service does not parse.
 */

import type { AuthQuery } from "./auth-queries.ts";
import type {
  CheckpointData,
  CheckpointRequest,
  CheckpointWrite,
  Language,
  NewCheckpointData,
  WriteData,
  WriteKey,
} from "./checkpoint-requests.ts";
import type { EncryptionQuery } from "./encryption-queries.ts";
import type { AppQuery, AppRequest, FetchRequest } from "./host-http.ts";
import type { EmbedQuery, StoreRequest } from "./host-store.ts";

/** Prefix of the types of events in the form of the thread protocol: `v2/<method>|<namespace>`. */
export const PROTOCOL_PREFIX = "v2/";

export interface ModuleExport {
  file: string;
  export_name: string;
}

/** A class of LangChain's embeddings in a package of the project, which is created with the name of a model. */
export interface ProviderEmbeddings {
  package_name: string;
  export_name: string;
  model: string;
}

/** A graph's module: `file` is an absolute path, or the dotted name of a Python module. */
export interface GraphToLoad extends ModuleExport {
  graph_id: string;
  language: Language;
}

export interface HostSetup {
  graphs: readonly GraphToLoad[];
  env: Readonly<Record<string, string>>;
  project_dir: string;
  /** The embedding function of the store. Loaded when it is first called. */
  embed?: ModuleExport | ProviderEmbeddings | undefined;
  /** The HTTP app of the project. Set only for the host that serves it. */
  app?: ModuleExport | undefined;
  /** The authentication module of the project. Loaded when it is first needed. */
  auth?: ModuleExport | undefined;
  /** The encryption module of the project, in Python. Loaded when it is first needed. */
  encryption?: ModuleExport | undefined;
  /** For Python graphs: see readPython() in config/project.ts. */
  python?: { version: string | undefined; sys_path: readonly string[] } | undefined;
}

/** A run to execute. runs/merge-request.ts creates its `kwargs`. */
export interface RunOrder {
  run_id: string;
  epoch: number;
  attempt: number;
  thread_id: string;
  assistant_id: string;
  graph_id: string;
  kwargs: RunKwargs;
}

export interface RunKwargs {
  input: unknown;
  command?: RunCommand | null;
  config: RunConfig;
  context?: Record<string, unknown> | null;
  stream_mode: string[];
  subgraphs: boolean;
  /** Set if the run was started with the thread protocol: its events are logged in that form, with {@link PROTOCOL_PREFIX}. */
  stream_protocol?: "v2";
  interrupt_before?: "*" | string[] | null;
  interrupt_after?: "*" | string[] | null;
  durability?: "sync" | "async" | "exit" | null;
  /** Set if the user comes from the project's authentication handler: the user's permissions are not scopes of an API key. */
  is_custom_user?: true;
  strict_resume?: boolean;
  /** Keeps the thread of a stateless run if the run is paused. */
  keep_paused?: true;
  [other: string]: unknown;
}

export interface RunConfig {
  tags?: string[];
  recursion_limit?: number;
  configurable?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  [other: string]: unknown;
}

/** How a host traces a run. */
export interface TraceOrder {
  /** Name of the tracing project (`session_name` in the API). */
  project_name: string;
  example_id: string | undefined;
  /** Start of the first attempt in milliseconds: all attempts of a run are one trace. */
  started_at: number;
  /** The run in the client's trace that is the parent of this run. */
  parent: TraceParent | undefined;
  /** Added to the metadata and tags of the root. */
  metadata: Record<string, unknown>;
  tags: string[];
}

/** A run of a LangSmith client, with its path in the trace, or the run of an OpenTelemetry span, whose path is unknown. */
export type TraceParent = { kind: "run"; dotted_order: string } | { kind: "span"; run_id: string };

export interface RunCommand {
  resume?: unknown;
  update?: unknown;
  goto?: Destination | Destination[];
}
type Destination = string | { node: string; input?: unknown };

export type AbortReason = "cancelled" | "lease_lost" | "timeout";

export type RunEpoch = Pick<RunOrder, "run_id" | "epoch">;

export interface HostOutcome {
  ended: "success" | "interrupted" | "error" | "aborted" | "drained";
  /** The response of wait and join, as JSON text. */
  output: string;
  state: StateSummary | undefined;
  error: { error: string; message: string } | undefined;
}

/** The state fields of a thread's record. Texts are JSON. */
export interface StateSummary {
  values: string;
  next: string[];
  /** `{task_id: [interrupt]}` */
  interrupts: string;
}

/** A request by a run's graph for a token. The record of the run names the user. */
export interface TokenRequest {
  op: "token";
  /** The `provider_id` in the workspace of the run. */
  provider: string;
  scopes: string[];
  /** Whether the token is connected to the run's assistant. */
  agent_scoped: boolean;
  token_id?: string;
}

/** An access token, or the URL at which the user can grant one. The token is never stored. */
export type TokenAnswer = { token: string } | { auth_url: string };

export type HostRequest = CheckpointRequest | TokenRequest | FetchRequest | StoreRequest | AppRequest;

export type LogLevel = "debug" | "info" | "warn" | "error";

/** A query outside of runs. It needs the graph objects, which exist only in hosts. */
export type GraphQuery =
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
  /** `without`: ignores the checkpoints and writes of this run. */
  | { kind: "summary"; graph: GraphInUse; checkpoint: CheckpointKey; without?: string }
  | { kind: "update"; graph: GraphInUse; checkpoint: CheckpointKey; supersteps: StateUpdate[][] }
  | { kind: "drawing"; graph: GraphInUse; xray: boolean | number }
  | { kind: "schemas"; graph: GraphInUse }
  | { kind: "subgraphs"; graph: GraphInUse; namespace?: string; recurse: boolean };

export type JsonSchema = Record<string, unknown>;

export interface GraphSchema {
  schema: JsonSchema | null;
  /** False if the schema contains only key names and no types. */
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

/** A page of states, newest first. PAGE_CHARS in inside/queries.ts limits its size. */
export interface HistoryPage {
  /** JSON texts separated by commas, as bytes, which the service forwards without copying them. */
  states: Uint8Array<ArrayBuffer>;
  count: number;
  /** The checkpoint before which the next page starts; absent on the last page. */
  before?: string;
}

/** The rows of a state update, which the service stores in one transaction, and the resulting state. */
export interface StagedUpdate {
  /** The newest checkpoint when the update was computed. */
  base: string | undefined;
  checkpoint: CheckpointKey;
  puts: NewCheckpointData[];
  writes: { thread_id: string; checkpoint_ns: string; checkpoint_id: string; writes: WriteData[] }[];
  state: StateSummary;
}

export type ToHost =
  /**
   * `head`: the thread's newest root checkpoint. `prior_writes`: writes of earlier claims of the run on the checkpoint it starts from.
   * `resume_consumed`: whether a task in any namespace has consumed a resume value in an earlier claim.
   */
  | {
      type: "start";
      order: RunOrder;
      head: CheckpointData | null;
      prior_writes: WriteKey[];
      resume_consumed: boolean;
      trace?: TraceOrder;
    }
  | { type: "abort"; run_id: string; epoch: number; reason: AbortReason }
  /** Requests a stop after the current step. The run continues in another process. */
  | { type: "drain"; run_id: string; epoch: number }
  | { type: "query"; id: number; query: GraphQuery | EmbedQuery | AppQuery | AuthQuery | EncryptionQuery }
  | { type: "reply"; id: number; value?: unknown; error?: { name: string; message: string } }
  | { type: "ping"; id: number };

export type FromHost =
  | { type: "loaded"; failures: Record<string, string>; warnings: string[] }
  | { type: "started"; run_id: string; epoch: number }
  | { type: "events"; run_id: string; epoch: number; events: [event: string, data: string][] }
  | { type: "done"; run_id: string; epoch: number; outcome: HostOutcome }
  /** `run` is absent if the request belongs to a query. */
  | { type: "request"; id: number; run?: RunEpoch; request: HostRequest }
  /** A write without a reply. If it fails, no later write of the run is stored. */
  | { type: "store"; run_id: string; epoch: number; write: CheckpointWrite }
  /** Trace runs of an agent run: JSON objects of `POST /runs`, separated by commas. `is_last`: the last trace message of the epoch. */
  | { type: "trace"; run_id: string; epoch: number; runs: Uint8Array<ArrayBuffer>; is_last: boolean }
  /** `fields` is a JSON object. `run` is absent while modules are loaded and in queries. */
  | { type: "log"; run?: RunEpoch; level: LogLevel; message: string; fields: string }
  | { type: "query_result"; id: number; value?: unknown; error?: { name: string; message: string } }
  /**
   * A thread of Python cannot be stopped. `abandoned`: runs whose code still executes so long after they were stopped. `oldest_call_ms`: how
   * long a handler of a query has been executing in a thread.
   */
  | { type: "pong"; id: number; abandoned?: (RunEpoch & { for_ms: number })[]; oldest_call_ms?: number };

export interface GraphHost {
  send(message: ToHost): void;
  terminate(): Promise<void>;
}

export interface HostListener {
  onMessage(message: FromHost): void;
  /** Called when the host ends without {@link GraphHost.terminate}. */
  onExit(reason: string): void;
}

/** Starts a host, which sends "loaded" when its graphs are loaded. */
export type StartHost = (setup: HostSetup, listener: HostListener) => GraphHost;
