import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createMcpHandler,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { asApiError } from "../../../platform/database/database-errors.ts";
import { ApiError } from "../../../platform/errors.ts";
import type { Log } from "../../../platform/lib/log.ts";
import { defaultAssistantId } from "../../assistants/default-assistants.ts";
import { assistantRoutes, assistantSearch } from "../../contract/assistants.ts";
import type { StreamMode } from "../../contract/records.ts";
import type { Disconnects } from "../../runs/disconnects.ts";
import type { Runs } from "../../runs/runs.ts";
import type { RunRow } from "../../storage/schema.ts";
import {
  answersIn,
  cancelledOf,
  errorOf,
  failureOf,
  outputOf,
  pausedOf,
  progressOf,
  questionsOf,
} from "./call-results.ts";
import type { McpRequest, ToolCalls } from "./tool-calls.ts";
import type { Tools } from "./tools.ts";

export interface McpServerOptions {
  tools: Tools;
  calls: ToolCalls;
  runs: Runs;
  disconnects: Disconnects;
  version: string;
  heartbeat_ms: number;
  log: Log;
}

/** A request to the server, and how it is answered. */
export interface ServedRequest extends McpRequest {
  http: Request;
  /** The parsed body of `http`. */
  body: unknown;
  isCall: boolean;
  /** From this call on, the end of the caller's access aborts `http`. The returned function cancels this. */
  watchAccess(): () => void;
}

/** Clients may reuse a list of tools for this time. */
const LIST_TTL_MS = 5_000;

type Result = CallToolResult | InputRequiredResult;

/** Answers requests of both generations of the protocol: with a session (2025-11-25 and earlier) and without (2026-07-28). */
export function serveRequest(options: McpServerOptions, request: ServedRequest): Promise<Response> {
  const { version, heartbeat_ms, log } = options;
  const handler = createMcpHandler(
    ({ era }) => {
      const server = new Server(
        { name: "threadmill", version },
        {
          capabilities: { tools: {} },
          cacheHints: { "tools/list": { ttlMs: LIST_TTL_MS, cacheScope: "private" } },
        },
      );
      const call = new ToolCall(options, request, era === "modern");
      server.setRequestHandler("tools/list", ({ params }) => reported(log, () => listTools(options, request, params)));
      server.setRequestHandler("tools/call", ({ params }, context) => call.answer(params, context));
      return server;
    },
    {
      // Comments keep the connection of a long call open.
      responseMode: request.isCall ? "sse" : "auto",
      keepAliveMs: heartbeat_ms,
      onerror: ({ message }) => log.debug({ error: message }, "MCP request not served"),
    },
  );
  return handler.fetch(request.http, { parsedBody: request.body });
}

async function listTools({ tools }: McpServerOptions, request: McpRequest, params: { cursor?: string } | undefined) {
  const { caller, metadata } = await authorizeSearch(request);
  const page = await tools.list(caller, metadata, params?.cursor);
  if (!page)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "cursor: must be the nextCursor of a previous response");
  return page;
}

/** The handlers of the project can restrict which assistants a caller can read. */
async function authorizeSearch({ caller, authorize }: McpRequest) {
  const body = assistantSearch.parse({});
  const parts = { params: {}, query: {}, body, caller };
  const authorized = ((await authorize?.(assistantRoutes.searchAssistants, parts)) ?? parts) as typeof parts;
  return { caller: authorized.caller, metadata: authorized.body.metadata };
}

/** Converts an unexpected error to one that contains no internal details, and logs its cause. */
async function reported<T>(log: Log, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const known = asApiError(error);
    if (known.status >= 500) log.error({ code: known.code, cause: known.cause ?? error }, "MCP request failed");
    throw new ProtocolError(ProtocolErrorCode.InternalError, known.message);
  }
}

interface CallParams {
  name: string;
  arguments?: Record<string, unknown> | undefined;
}

class ToolCall {
  readonly #options: McpServerOptions;
  readonly #request: ServedRequest;
  /** Whether the protocol is stateless: closing the response cancels the call, and a paused call asks the client. */
  readonly #isStateless: boolean;

  constructor(options: McpServerOptions, request: ServedRequest, isStateless: boolean) {
    this.#options = options;
    this.#request = request;
    this.#isStateless = isStateless;
  }

  answer(params: CallParams, context: ServerContext): Promise<Result> {
    return reported(this.#options.log, async () => {
      // The signal of the request is also aborted after its normal end.
      const client = new AbortController();
      const { signal } = context.mcpReq;
      const onAbort = () => client.abort(signal.reason);
      if (signal.aborted) onAbort();
      signal.addEventListener("abort", onAbort);
      const unwatch = this.#request.watchAccess();
      try {
        return await this.#run(params, context, client.signal);
      } catch (error) {
        // The model can react to a refusal.
        if (error instanceof ApiError && error.status < 500) return failureOf(error.message);
        // Not an error of the service: there is no reader for the response.
        if (client.signal.aborted) throw new ProtocolError(ProtocolErrorCode.InternalError, "The client disconnected.");
        throw error;
      } finally {
        signal.removeEventListener("abort", onAbort);
        unwatch();
      }
    });
  }

  async #run(params: CallParams, context: ServerContext, client: AbortSignal): Promise<Result> {
    const { mcpReq } = context;
    const stream_mode: StreamMode[] = mcpReq._meta?.progressToken === undefined ? ["values"] : ["updates", "custom"];
    const started = await this.#start(params, mcpReq, stream_mode);
    if ("content" in started || "inputRequests" in started) return started as Result;
    const run = started as RunRow;
    const { runs, disconnects } = this.#options;
    if (this.#isStateless) disconnects.watch(run, client);
    const hasReported = await this.#reportProgress(run, context, client);
    const { status, output } = await runs.ending(run, client, { isNew: !hasReported });
    if (status === "interrupted") return this.#interrupted(run, output, mcpReq);
    return status === "success" ? outputOf(run, output) : errorOf(output);
  }

  /** Accepts the run of the call, or one that continues a paused run; returns a result if there is none to wait for. */
  async #start(
    params: CallParams,
    mcpReq: ServerContext["mcpReq"],
    stream_mode: StreamMode[],
  ): Promise<RunRow | Result> {
    const { calls } = this.#options;
    const assistant_id = await this.#findAssistant(params.name);
    const state = this.#isStateless ? mcpReq.requestState() : undefined;
    if (state === undefined) {
      const options = { stream_mode, request_id: mcpReq.id };
      const session_id = this.#isStateless ? undefined : this.#request.session_id;
      const run = await calls.create({ ...this.#request, session_id }, assistant_id, params.arguments ?? {}, options);
      if (run) return run;
      throw new ProtocolError(ProtocolErrorCode.InvalidRequest, "id: must not have been used before in this session");
    }
    const paused = await calls.findPaused(this.#request, state, assistant_id);
    if (!paused) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "requestState: does not belong to this call");
    const interrupts = await calls.interruptsOf(paused);
    if (interrupts.length === 0) return failureOf("The run is no longer waiting for input.");
    const answers = answersIn(mcpReq.inputResponses, interrupts);
    if (answers === "declined") return failureOf(`The request for input was declined. ${waiting(paused)}`);
    if (Object.keys(answers).length === 0) return questionsOf(paused, interrupts);
    return calls.resume(this.#request, paused, answers, stream_mode);
  }

  async #findAssistant(name: string): Promise<string> {
    const { tools } = this.#options;
    if (tools.isGraph(name)) return defaultAssistantId(name);
    const { caller, metadata } = await authorizeSearch(this.#request);
    const assistant_id = await tools.find(caller, metadata, name);
    if (assistant_id !== undefined) return assistant_id;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 200)}`);
  }

  /**
   * Sends at most one notification per batch of events, so a slow client causes a small buffer. Returns when the run has ended, or false at
   * once if the client has not asked for progress.
   */
  async #reportProgress(run: RunRow, { mcpReq }: ServerContext, client: AbortSignal): Promise<boolean> {
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken === undefined) return false;
    for await (const events of this.#options.runs.eventsOfNew(run, client)) {
      const last = events.findLast((event) => progressOf(event) !== undefined);
      if (last === undefined) continue;
      // The position of an event increases, as progress must.
      const params = { progressToken, progress: Number(last.seq), message: progressOf(last) as string };
      await mcpReq.notify({ method: "notifications/progress", params });
    }
    return true;
  }

  async #interrupted(run: RunRow, output: string, mcpReq: ServerContext["mcpReq"]): Promise<Result> {
    const { calls } = this.#options;
    const ended = await calls.ended(run);
    if (ended.cancel_action !== null) return cancelledOf(ended);
    const interrupts = canAsk(mcpReq) ? await calls.interruptsOf(ended) : [];
    return interrupts.length > 0 ? questionsOf(ended, interrupts) : pausedOf(ended, output);
  }
}

const waiting = ({ thread_id }: RunRow): string => `The run of thread ${thread_id} is still paused.`;

/** Whether the client can show a form to its user. Clients of 2025-11-25 send their capabilities only once, to one of the processes. */
function canAsk({ envelope }: ServerContext["mcpReq"]): boolean {
  const capabilities = envelope?.[CLIENT_CAPABILITIES_META_KEY as keyof typeof envelope] as
    | ClientCapabilities
    | undefined;
  const elicitation = capabilities?.elicitation;
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}
