import { setTimeout as pause } from "node:timers/promises";
import type { Caller } from "../../../platform/contract/caller.ts";
import { ApiError } from "../../../platform/errors.ts";
import type { Authorize } from "../../../platform/http/route.ts";
import { idOfName, isUuid } from "../../../platform/lib/ids.ts";
import { filterOf } from "../../auth/grants.ts";
import type { AgentContext } from "../../context.ts";
import type { StreamMode } from "../../contract/records.ts";
import { runCreate, statelessRunCreate } from "../../contract/run-schemas.ts";
import { runRoutes, statelessRunRoutes } from "../../contract/runs.ts";
import type { Cancellations } from "../../engine/index.ts";
import type { RunKwargs } from "../../graph-hosts/host.ts";
import type { RunRequest } from "../../runs/merge-request.ts";
import type { Runs } from "../../runs/runs.ts";
import { findRun } from "../../storage/runs.ts";
import type { RunRow } from "../../storage/schema.ts";
import { findThread } from "../../storage/threads.ts";

/** An HTTP request to the MCP server. */
export interface McpRequest {
  caller: Caller;
  /** Undefined if the caller needs no authorization by the project's handlers. */
  authorize: Authorize | undefined;
  /** Adds headers of the request to the configuration of its run. */
  withHeaders<Body extends Pick<RunRequest, "config">>(body: Body): Body;
  /** The session id that the response to `initialize` contained. */
  session_id: string | undefined;
}

export type RequestId = string | number;

export interface Interrupt {
  id: string;
  value: unknown;
}

/** A notification can arrive before the request that it cancels has created its run. */
const CANCEL_TRIES = 10;
const CANCEL_INTERVAL_MS = 100;

/** Namespace of the run ids that are derived from requests. */
const NAMESPACE = "5d1c1e0a-6d0e-4c0b-9a55-0d6d8c1b6c1e";

/**
 * Returns the id of the run of a request. All processes derive the same id from the same request, so each of them can cancel the run. It
 * contains the caller, so that a session id gives no access to the runs of others.
 */
function runIdOf({ tenant_id, user_id }: Caller, session_id: string, request_id: RequestId): string {
  return idOfName(JSON.stringify([tenant_id, user_id, session_id, request_id]), NAMESPACE);
}

export class ToolCalls {
  readonly #context: AgentContext;
  readonly #runs: Runs;
  readonly #cancellations: Cancellations;

  constructor(context: AgentContext, runs: Runs, cancellations: Cancellations) {
    this.#context = context;
    this.#runs = runs;
    this.#cancellations = cancellations;
  }

  /**
   * Accepts the run of a call. If the run is paused, its thread is kept.
   *
   * @returns undefined if a request of the session with this id has already created a run
   */
  async create(
    { caller, authorize, withHeaders, session_id }: McpRequest,
    assistant_id: string,
    input: unknown,
    { stream_mode, request_id }: { stream_mode: StreamMode[]; request_id: RequestId },
  ): Promise<RunRow | undefined> {
    const body = withHeaders(statelessRunCreate.parse({ assistant_id, input, stream_mode }));
    const parts = { params: {}, query: {}, body, caller };
    const authorized = ((await authorize?.(statelessRunRoutes.createStatelessRunWait, parts)) ?? parts) as typeof parts;
    const run_id = session_id === undefined ? undefined : runIdOf(caller, session_id, request_id);
    const options = { ...(run_id !== undefined && { run_id }), keep_paused: true };
    try {
      const [run] = await this.#runs.createStateless(authorized.caller, [authorized.body], options);
      return run;
    } catch (error) {
      if (run_id !== undefined && this.#context.database.read.dialect.isUniqueViolation(error)) return undefined;
      throw error;
    }
  }

  /** Accepts a run that answers interrupts of a paused run. */
  async resume(
    { caller, authorize, withHeaders }: McpRequest,
    { thread_id, assistant_id }: RunRow,
    resume: Record<string, unknown>,
    stream_mode: StreamMode[],
  ): Promise<RunRow> {
    // With strict_resume, a repeated answer fails instead of starting the graph again.
    const body = withHeaders(runCreate.parse({ assistant_id, command: { resume }, strict_resume: true, stream_mode }));
    const parts = { params: { thread_id }, query: {}, body, caller };
    const authorized = ((await authorize?.(runRoutes.createRunWait, parts)) ?? parts) as typeof parts;
    return this.#runs.create(authorized.caller, thread_id, authorized.body);
  }

  /**
   * Finds the paused run of a request state. The state is the run's id: it is not signed, because it grants nothing. The caller must have
   * created the run, and a resume is authorized like any other run on the thread.
   */
  async findPaused(
    { caller, authorize }: Pick<McpRequest, "caller" | "authorize">,
    state: unknown,
    assistant_id: string,
  ): Promise<RunRow | undefined> {
    if (typeof state !== "string" || !isUuid(state)) return undefined;
    const { tenant_id, user_id } = caller;
    const { read } = this.#context.database;
    const run = await findRun(read, { tenant_id, run_id: state.toLowerCase() });
    if (run?.status !== "interrupted" || run.cancel_action !== null || run.assistant_id !== assistant_id)
      return undefined;
    const { config } = JSON.parse(run.kwargs) as RunKwargs;
    if (config.configurable?.user_id !== user_id) return undefined;
    const { thread_id, run_id } = run;
    // The thread may have got another owner, whose interrupts it then has.
    const authorized = await authorize?.(runRoutes.getRun, {
      params: { thread_id, run_id },
      query: {},
      body: {},
      caller,
    });
    const access = authorized && filterOf(authorized.caller, "threads");
    return !access || (await findThread(read, tenant_id, thread_id, access)) ? run : undefined;
  }

  /** Returns the open interrupts of a run's thread. */
  async interruptsOf({ tenant_id, thread_id }: RunRow): Promise<Interrupt[]> {
    const thread = await findThread(this.#context.database.read, tenant_id, thread_id);
    if (thread?.status !== "interrupted") return [];
    return Object.values(JSON.parse(thread.interrupts) as Record<string, Interrupt[]>).flat();
  }

  /** Cancels the run of an earlier request of the session, which any process may execute. Does nothing if the run has ended. */
  async cancel(caller: Caller, session_id: string, request_id: RequestId, reason: string | null): Promise<void> {
    const key = { tenant_id: caller.tenant_id, run_id: runIdOf(caller, session_id, request_id) };
    for (let tries = 1; tries <= CANCEL_TRIES; tries++) {
      const run = await findRun(this.#context.database.read, key);
      if (run) return this.#cancellations.cancelIfActive(run, reason);
      await pause(CANCEL_INTERVAL_MS, undefined, { ref: false });
    }
  }

  /** Returns the run after its end. */
  async ended({ tenant_id, run_id }: RunRow): Promise<RunRow> {
    const run = await findRun(this.#context.database.read, { tenant_id, run_id });
    if (!run) throw new ApiError("run_not_found");
    return run;
  }
}
