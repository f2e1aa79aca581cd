import type { Context } from "hono";
import type { Caller } from "../agents/context.ts";
import type { RunPath, Runs, StreamedEvent } from "../agents/runs.ts";
import type { Log } from "../lib/log.ts";
import { sseResponse } from "./sse.ts";
import { waitingResponse } from "./waiting.ts";

export interface AnswerOptions {
  runs: Runs;
  heartbeat_ms: number;
  log: Log;
}

type NewRun = Parameters<Runs["eventsOfNew"]>[0];

/** The responses that runs have in common: a stream, an output that is waited for, and headers that say where. */
export class RunAnswers {
  readonly #options: AnswerOptions;

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  /** Clients take the run's id from the end of this path, so nothing may follow it. */
  createdAt(path: RunPath): Record<string, string> {
    return { "Content-Location": pathOf(path) };
  }

  joinAt(path: RunPath, context: Context): Record<string, string> {
    return { Location: `${pathOf(path)}/join${queryOf(context)}` };
  }

  /** Where a client goes on when its stream breaks, with the query it had. */
  #streamAt(path: RunPath, context: Context): Record<string, string> {
    return { Location: `${pathOf(path)}/stream${queryOf(context)}` };
  }

  streamNew(run: NewRun, path: RunPath, context: Context): Response {
    const gone = goneWith(context);
    const headers = { ...this.createdAt(path), ...this.#streamAt(path, context) };
    return this.#stream(this.#options.runs.eventsOfNew(run, gone.signal), undefined, headers, gone);
  }

  async joinStream(
    caller: Caller,
    path: RunPath,
    after: number | undefined,
    modes: readonly string[] | undefined,
    context: Context,
  ): Promise<Response> {
    const gone = goneWith(context);
    const events = await this.#options.runs.events(caller, path, after, gone.signal);
    return this.#stream(events, modes, this.#streamAt(path, context), gone);
  }

  #stream(
    events: AsyncGenerator<StreamedEvent[]>,
    modes: readonly string[] | undefined,
    headers: Record<string, string>,
    gone: AbortController,
  ): Response {
    const { heartbeat_ms } = this.#options;
    return sseResponse(events, { modes, headers, gone, heartbeat_ms, onError: (error) => this.#log(error) });
  }

  waitForNew(run: NewRun, path: RunPath, context: Context): Promise<Response> {
    const gone = goneWith(context);
    const headers = { ...this.createdAt(path), ...this.joinAt(path, context) };
    return this.#wait(this.#options.runs.outputOfNew(run, gone.signal), headers, gone);
  }

  join(caller: Caller, path: RunPath, context: Context): Promise<Response> {
    const gone = goneWith(context);
    return this.#wait(this.#options.runs.output(caller, path, gone.signal), this.joinAt(path, context), gone);
  }

  #wait(output: Promise<string>, headers: Record<string, string>, gone: AbortController): Promise<Response> {
    return waitingResponse(output, headers, gone, (error) => this.#log(error));
  }

  #log(error: unknown): void {
    this.#options.log.warn({ error }, "an answer broke off");
  }
}

/** Relative to the address that the client was given: it puts that in front itself, with any path prefix. */
const pathOf = ({ thread_id, run_id }: RunPath): string =>
  `${thread_id === undefined ? "" : `/threads/${thread_id}`}/runs/${run_id}`;

const queryOf = (context: Context): string => new URL(context.req.url).search;

/** Aborted when the client of this request is gone. */
function goneWith(context: Context): AbortController {
  const gone = new AbortController();
  const { signal } = context.req.raw;
  if (signal.aborted) gone.abort(signal.reason);
  else signal.addEventListener("abort", () => gone.abort(signal.reason), { once: true });
  return gone;
}
