import type { Caller } from "../../../platform/contract/caller.ts";
import type { Tx } from "../../../platform/database/database.ts";
import { ApiError } from "../../../platform/errors.ts";
import type { Authorize } from "../../../platform/http/route.ts";
import { isObject, type JsonObject } from "../../../platform/lib/json/json.ts";
import { filterOf } from "../../auth/grants.ts";
import type { AgentContext } from "../../context.ts";
import type { RunStatus } from "../../contract/records.ts";
import { type RunCreate, runCreate } from "../../contract/run-schemas.ts";
import { runRoutes } from "../../contract/runs.ts";
import {
  type ProtocolCommand,
  type ProtocolResponse,
  responseParams,
  stateParams,
  treeParams,
  withCommand,
} from "../../contract/thread-protocol.ts";
import { PROTOCOL_PREFIX } from "../../graph-hosts/host.ts";
import type { Runs } from "../../runs/runs.ts";
import { EventReader, type StoredEvent } from "../../storage/event-reader.ts";
import { findRun, listActiveRuns } from "../../storage/runs.ts";
import type { RunRow, ThreadRow } from "../../storage/schema.ts";
import { lockThread } from "../../storage/threads.ts";
import { requireThread, type ThreadStates } from "../../threads/thread-states.ts";
import { CommandError, errorResponse, parsed } from "./command-error.ts";
import { seqBefore } from "./protocol-events.ts";

/** The sender of a command. */
export interface Sender {
  caller: Caller;
  /** Undefined if the caller needs no authorization by the project's handlers. */
  authorize: Authorize | undefined;
  /** Adds what the headers of the request set. */
  adapt(run: RunCreate): RunCreate;
}

interface Call extends Sender {
  thread_id: string;
  params: JsonObject;
}

interface Outcome {
  result: JsonObject;
  applied_through_seq?: number;
}

/** Executes the commands of the thread protocol. */
export class ThreadCommands {
  readonly #context: AgentContext;
  readonly #runs: Runs;
  readonly #states: ThreadStates;

  constructor(context: AgentContext, runs: Runs, states: ThreadStates) {
    this.#context = context;
    this.#runs = runs;
    this.#states = states;
  }

  /** @throws ApiError for failures of the service; other failures are in the response */
  async execute(sender: Sender, thread_id: string, { id, method, params }: ProtocolCommand): Promise<ProtocolResponse> {
    try {
      const { result, applied_through_seq } = await this.#outcomeOf({ ...sender, thread_id, params }, method);
      const meta = { thread_id, ...(applied_through_seq !== undefined && { applied_through_seq }) };
      return { type: "success", id, result, meta };
    } catch (error) {
      if (error instanceof CommandError || (error instanceof ApiError && error.status < 500))
        return errorResponse(id, error);
      throw error;
    }
  }

  #outcomeOf(call: Call, method: string): Promise<Outcome> {
    switch (method) {
      case "run.start":
        return this.#start(call);
      case "input.respond":
        return this.#respond(call);
      case "state.get":
        return this.#state(call);
      case "agent.getTree":
        return this.#tree(call);
      case "input.inject":
      case "state.fork":
      case "state.listCheckpoints":
      case "subscription.reconnect":
        throw new CommandError("not_supported", `The command "${method}" is not supported.`);
      case "subscription.subscribe":
      case "subscription.unsubscribe":
        throw new CommandError("not_supported", `The command "${method}" is supported on a WebSocket only.`);
      default:
        throw new CommandError("unknown_command", `The command "${method}" is unknown.`);
    }
  }

  /** Starts a run, or resumes the thread with the input if an interrupt waits for a response. */
  async #start({ caller, thread_id, params, adapt }: Call): Promise<Outcome> {
    const useless = NOT_READ.find((name) => params[name] !== undefined);
    if (useless)
      throw new CommandError("invalid_argument", `"${useless}" has no effect in the thread protocol: remove it.`);
    const { multitaskStrategy, ...fields } = params;
    const multitask_strategy = fields.multitask_strategy ?? multitaskStrategy;
    const body = adapt(parsed(runCreate, { ...withCommand(fields), multitask_strategy, if_not_exists: "create" }));
    const run = await this.#runs.createFor(caller, thread_id, body, async (tx) => {
      const thread = await this.#lock(tx, caller, thread_id);
      const resumes = body.input !== null && thread?.status === "interrupted" && interruptIdsOf(thread).length > 0;
      return { ...body, ...PROTOCOL, ...(resumes && { input: null, command: { resume: body.input } }) };
    });
    return started(run);
  }

  async #respond({ caller, authorize, thread_id, params, adapt }: Call): Promise<Outcome> {
    const { interrupt_id, response, responses, update, goto, ...fields } = parsed(responseParams, params);
    const given = responses ?? (interrupt_id === undefined ? [] : [{ interrupt_id, response }]);
    if (given.length === 0) throw new CommandError("invalid_argument", "interrupt_id or responses is required");
    const thread = await requireThread(this.#context.database.read, caller, thread_id);
    const { assistant_id, graph_id } = JSON.parse(thread.metadata) as Record<string, unknown>;
    const resume = Object.fromEntries(given.map(({ interrupt_id, response }) => [interrupt_id, response]));
    const command = { resume, update, goto };
    const body = adapt(
      parsed(runCreate, { ...fields, assistant_id: assistant_id ?? graph_id, command, strict_resume: true }),
    );
    const parts = { params: { thread_id }, query: {}, body, caller };
    const allowed = ((await authorize?.(runRoutes.createRun, parts)) ?? parts) as typeof parts;
    const run = await this.#runs.createFor(allowed.caller, thread_id, allowed.body, async (tx) => {
      await this.#requireOpen(tx, allowed.caller, thread_id, Object.keys(resume));
      return { ...allowed.body, ...PROTOCOL };
    });
    return started(run);
  }

  /** @throws CommandError no_such_interrupt if an interrupt does not exist, or if an active run already resumes it */
  async #requireOpen(tx: Tx, caller: Caller, thread_id: string, ids: readonly string[]): Promise<void> {
    const thread = await this.#lock(tx, caller, thread_id);
    const open = new Set(thread && interruptIdsOf(thread));
    for (const { kwargs } of await listActiveRuns(tx, thread_id)) {
      const { resume } = (JSON.parse(kwargs) as { command?: { resume?: JsonObject } }).command ?? {};
      for (const id of Object.keys(resume ?? {})) open.delete(id);
    }
    const missing = ids.find((id) => !open.has(id));
    if (missing !== undefined)
      throw new CommandError("no_such_interrupt", `The interrupt "${missing}" does not exist or has been answered.`);
  }

  async #state({ caller, thread_id, params }: Call): Promise<Outcome> {
    const { namespace, keys } = parsed(stateParams, params);
    const at = namespace.length > 0 ? { checkpoint_ns: namespace.join("|") } : {};
    const text = await this.#states.get(caller, thread_id, at, { subgraphs: false });
    const { values, checkpoint } = JSON.parse(text) as { values: unknown; checkpoint: StateCheckpoint | null };
    // The state of a graph of the functional API can be any value.
    const selected =
      keys && isObject(values)
        ? Object.fromEntries(keys.flatMap((key) => (key in values ? [[key, values[key]]] : [])))
        : values;
    const reference = checkpoint?.checkpoint_id && { id: checkpoint.checkpoint_id, ns: checkpoint.checkpoint_ns };
    return { result: { values: selected, ...(reference && { checkpoint: reference }) } };
  }

  async #tree({ caller, thread_id, params }: Call): Promise<Outcome> {
    const { read } = this.#context.database;
    const thread = await requireThread(read, caller, thread_id);
    const { run_id = (await this.#context.engine.threadEvents.last(thread, 1))[0]?.run_id } = parsed(
      treeParams,
      params,
    );
    const run = run_id && (await findRun(read, { tenant_id: thread.tenant_id, thread_id, run_id }));
    if (!run)
      throw new CommandError(
        "no_such_run",
        `The thread has no ${run_id ? `run "${run_id}"` : "run that has started"}.`,
      );
    return { result: { tree: (await agentTree(read, run)) as unknown as JsonObject } };
  }

  #lock = (tx: Tx, caller: Caller, thread_id: string): Promise<ThreadRow | undefined> =>
    lockThread(tx, caller.tenant_id, thread_id, filterOf(caller, "threads"));
}

/** Fields of a run that the protocol sets itself. */
const NOT_READ = ["command", "stream_mode", "stream_subgraphs", "stream_resumable"];

interface StateCheckpoint {
  checkpoint_id?: string;
  checkpoint_ns?: string;
}

/** The events of all channels are logged, because readers may subscribe to them at any time. */
const PROTOCOL = {
  stream_protocol: "v2" as const,
  stream_mode: ["values", "updates", "messages", "tools", "custom", "tasks", "checkpoints"] as const satisfies string[],
  stream_subgraphs: true,
  stream_resumable: true,
};

const started = (run: RunRow): Outcome => ({ result: { run_id: run.run_id }, applied_through_seq: seqBefore(run) });

function interruptIdsOf(thread: ThreadRow): string[] {
  const interrupts = JSON.parse(thread.interrupts) as Record<string, { id?: string }[]>;
  return Object.values(interrupts).flatMap((items) => items.flatMap(({ id }) => id ?? []));
}

/** A graph of a run, with the graphs that it has called: `AgentTreeNode` of the package `@langchain/protocol`. */
interface AgentTreeNode {
  namespace: string[];
  status: string;
  graph_name: string;
  children: AgentTreeNode[];
}

const STATUSES: Record<RunStatus, string> = {
  pending: "started",
  running: "running",
  success: "completed",
  error: "failed",
  timeout: "failed",
  interrupted: "interrupted",
};

const LIFECYCLE = `${PROTOCOL_PREFIX}lifecycle`;

/** Builds the tree from the lifecycle events of the run's last attempt. A run of the run API has no such events of subgraphs. */
async function agentTree(read: Tx, run: RunRow): Promise<AgentTreeNode> {
  const nodes = new Map<string, AgentTreeNode>();
  for await (const { event, data } of eventsOf(read, run)) {
    if (event === "metadata") nodes.clear();
    const [method, ...namespace] = event.split("|");
    if (method !== LIFECYCLE) continue;
    const { data: about } = JSON.parse(data) as { data: { event: string; graph_name?: string } };
    const { event: status, graph_name = "" } = about;
    nodes.set(namespace.join("|"), { namespace, status, graph_name, children: [] });
  }
  const root = { namespace: [], status: STATUSES[run.status], graph_name: run.graph_id, children: [] };
  for (const node of nodes.values()) parentOf(node, nodes, root).children.push(node);
  return root;
}

async function* eventsOf(read: Tx, { run_id }: RunRow): AsyncGenerator<StoredEvent> {
  const reader = new EventReader(run_id);
  for (let seen = 0; ; ) {
    const events = await reader.after(read, seen);
    const last = events.at(-1);
    if (!last) return;
    yield* events;
    seen = last.seq;
  }
}

/** The graph with the longest namespace that the node's begins with. */
function parentOf({ namespace }: AgentTreeNode, nodes: Map<string, AgentTreeNode>, root: AgentTreeNode): AgentTreeNode {
  for (let length = namespace.length - 1; length > 0; length--) {
    const parent = nodes.get(namespace.slice(0, length).join("|"));
    if (parent) return parent;
  }
  return root;
}
