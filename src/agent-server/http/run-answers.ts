import type { Context } from "hono";
import type { Caller } from "../../platform/contract/caller.ts";
import { type Gone, goneWith } from "../../platform/http/client-abort.ts";
import type { Env } from "../../platform/http/route.ts";
import { waitingResponse } from "../../platform/http/waiting.ts";
import type { Log } from "../../platform/lib/log.ts";
import type { OnDisconnect } from "../contract/runs.ts";
import type { Disconnects } from "../disconnects.ts";
import type { StreamedEvent } from "../engine/event-log.ts";
import type { RunPath, Runs } from "../runs.ts";
import { sseResponse } from "./sse.ts";

export interface AnswerOptions {
  runs: Runs;
  disconnects: Disconnects;
  heartbeat_ms: number;
  log: Log;
}

type NewRun = Parameters<Runs["eventsOfNew"]>[0];

/** What a request says of the time after its client is gone. */
interface Wish {
  on_disconnect?: OnDisconnect;
  cancel_on_disconnect?: boolean;
}

/** A request for a run that exists. */
export interface Join {
  caller: Caller;
  path: RunPath;
  context: Context<Env>;
  cancel: boolean;
}

/** The first of the places that says something decides; without any the run goes on. */
export function isToCancel(...places: Wish[]): boolean {
  for (const { on_disconnect, cancel_on_disconnect } of places) {
    if (on_disconnect !== undefined) return on_disconnect === "cancel";
    if (cancel_on_disconnect !== undefined) return cancel_on_disconnect;
  }
  return false;
}

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

  /** Where a client waits for the end of a run. */
  joinAt(path: RunPath, context: Context, cancel = false): Record<string, string> {
    return { Location: `${pathOf(path)}/join${queryOf(context, cancel)}` };
  }

  /** Where a client goes on when its stream breaks, with the query it had. */
  #streamAt(path: RunPath, context: Context, cancel: boolean): Record<string, string> {
    return { Location: `${pathOf(path)}/stream${queryOf(context, cancel)}` };
  }

  streamNew(run: NewRun, path: RunPath, context: Context<Env>, cancel: boolean): Response {
    const gone = goneWith(context);
    if (cancel) this.#options.disconnects.watch(run, gone.signal);
    const headers = { ...this.createdAt(path), ...this.#streamAt(path, context, cancel) };
    return this.#stream(this.#options.runs.eventsOfNew(run, gone.signal), undefined, headers, gone);
  }

  async joinStream(
    { caller, path, context, cancel }: Join,
    after: number | undefined,
    modes: readonly string[] | undefined,
  ): Promise<Response> {
    const gone = goneWith(context);
    const { run, events } = await this.#options.runs.events(caller, path, after, gone.signal);
    this.#attend(run, gone, cancel);
    return this.#stream(events, modes, this.#streamAt(path, context, cancel), gone);
  }

  #attend(run: NewRun, gone: Gone, cancel: boolean): void {
    this.#options.disconnects.arrived(run.run_id);
    if (cancel) this.#options.disconnects.watch(run, gone.signal);
  }

  #stream(
    events: AsyncGenerator<readonly StreamedEvent[]>,
    modes: readonly string[] | undefined,
    headers: Record<string, string>,
    gone: Gone,
  ): Response {
    const { heartbeat_ms } = this.#options;
    return sseResponse(events, { modes, headers, gone, heartbeat_ms, onError: (error) => this.#log(error) });
  }

  waitForNew(run: NewRun, path: RunPath, context: Context<Env>, cancel: boolean): Promise<Response> {
    const gone = goneWith(context);
    if (cancel) this.#options.disconnects.watch(run, gone.signal);
    const headers = { ...this.createdAt(path), ...this.joinAt(path, context, cancel) };
    return this.#wait(this.#options.runs.outputOfNew(run, gone.signal), headers, gone);
  }

  async join({ caller, path, context, cancel }: Join): Promise<Response> {
    const gone = goneWith(context);
    const run = await this.#options.runs.find(caller, path);
    this.#attend(run, gone, cancel);
    return this.#wait(this.#options.runs.output(run, gone.signal), this.joinAt(path, context, cancel), gone);
  }

  #wait(output: Promise<string>, headers: Record<string, string>, gone: Gone): Promise<Response> {
    return waitingResponse(output, headers, gone, (error) => this.#log(error));
  }

  #log(error: unknown): void {
    this.#options.log.warn({ error }, "an answer broke off");
  }
}

/** Relative to the address that the client was given: it puts that in front itself, with any path prefix. */
const pathOf = ({ thread_id, run_id }: RunPath): string =>
  `${thread_id === undefined ? "" : `/threads/${thread_id}`}/runs/${run_id}`;

/** The query of the request, with what was decided of disconnects: its body may have said so, and a GET has none. */
function queryOf(context: Context, cancel: boolean): string {
  const { search, searchParams } = new URL(context.req.url);
  const isCancel = (name: string) => ["cancel", "true", "1"].includes(searchParams.get(name) ?? "");
  if ((isCancel("on_disconnect") || isCancel("cancel_on_disconnect")) === cancel) return search;
  searchParams.delete("on_disconnect");
  searchParams.delete("cancel_on_disconnect");
  if (cancel) searchParams.set("cancel_on_disconnect", "true");
  return searchParams.size === 0 ? "" : `?${searchParams}`;
}
