import type { Context } from "hono";
import { type RunPath, type Runs, type StreamedEvent, toRun } from "../agents/runs.ts";
import { agentServerRoutes } from "../contract/routes.ts";
import { ApiError } from "../errors.ts";
import type { Log } from "../lib/log.ts";
import { type App, serve } from "./route.ts";
import { selectFields } from "./select.ts";
import { sseResponse } from "./sse.ts";
import { waitingResponse } from "./waiting.ts";

export interface RunsOptions {
  runs: Runs;
  heartbeat_ms: number;
  /** Prefix of all paths, for the headers that hold one. */
  prefix: string;
  log: Log;
}

type Row = Parameters<Runs["eventsOfNew"]>[0];

export function serveRuns(app: App, options: RunsOptions): void {
  const { runs } = options;
  const routes = agentServerRoutes.runs;
  const answer = new RunAnswers(options);

  serve(app, routes.createRun, async ({ caller, params, body, context }) => {
    const run = await runs.create(caller, params.thread_id, body);
    return context.json(toRun(run), 200, answer.createdAt(run));
  });

  serve(app, routes.createRunStream, async ({ caller, params, body, context }) =>
    answer.streamNew(await runs.create(caller, params.thread_id, body), context),
  );

  serve(app, routes.createRunWait, async ({ caller, params, body, context }) =>
    answer.waitForNew(await runs.create(caller, params.thread_id, body), context),
  );

  serve(app, routes.listRuns, async ({ caller, params, query, context }) =>
    context.json(selectFields(await runs.list(caller, params.thread_id, query), query.select)),
  );

  serve(app, routes.getRun, async ({ caller, params, context }) => context.json(await runs.get(caller, params)));

  serve(app, routes.deleteRun, async ({ caller, params, context }) => {
    await runs.delete(caller, params.thread_id, params.run_id);
    return context.body(null, 204);
  });

  serve(app, routes.joinRun, async ({ caller, params, context }) =>
    answer.wait(params, (gone) => runs.output(caller, params, gone), context),
  );

  serve(app, routes.joinRunStream, async ({ caller, params, query, headers, context }) =>
    answer.stream(
      (gone) => runs.events(caller, params, lastSeen(headers["Last-Event-ID"]), gone),
      context,
      query.stream_mode,
    ),
  );

  serve(app, routes.cancelRun, async ({ caller, params, query, context, signal }) => {
    await runs.cancel(caller, params.thread_id, params.run_id, query, signal);
    return context.body(null, query.wait ? 204 : 202, query.wait ? answer.joinAt(params, context) : {});
  });

  serve(app, routes.createStatelessRun, async ({ caller, body, context }) => {
    const [run] = await runs.createStateless(caller, [body]);
    return context.json(toRun(run as Row), 200, answer.createdAt(run as Row));
  });

  serve(app, routes.createStatelessRunStream, async ({ caller, body, context }) => {
    const [run] = await runs.createStateless(caller, [body]);
    return answer.streamNew(run as Row, context);
  });

  serve(app, routes.createStatelessRunWait, async ({ caller, body, context }) => {
    const [run] = await runs.createStateless(caller, [body]);
    return answer.waitForNew(run as Row, context);
  });

  serve(app, routes.createRunBatch, async ({ caller, body, context }) =>
    context.json((await runs.createStateless(caller, body)).map(toRun)),
  );

  serve(app, routes.joinStatelessRun, async ({ caller, params, context }) =>
    answer.wait(params, (gone) => runs.output(caller, params, gone), context),
  );

  serve(app, routes.joinStatelessRunStream, async ({ caller, params, query, headers, context }) =>
    answer.stream(
      (gone) => runs.events(caller, params, lastSeen(headers["Last-Event-ID"]), gone),
      context,
      query.stream_mode,
    ),
  );
}

/** The position in `Last-Event-ID`: undefined without it, 0 for `-1`, which means everything. */
function lastSeen(id: string | undefined): number | undefined {
  if (id === undefined || id === "") return undefined;
  if (id === "-1") return 0;
  if (/^\d{1,15}$/.test(id)) return Number(id);
  throw new ApiError("invalid_request", {
    reason: `header.Last-Event-ID: "${id}" is not the id of an event of this stream`,
  });
}

/** The responses that runs have in common. */
class RunAnswers {
  readonly #options: RunsOptions;

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Clients take the run's id from the end of this path, so nothing may follow it. */
  createdAt(run: Row): Record<string, string> {
    return { "Content-Location": this.#path(run.temporary ? { run_id: run.run_id } : run) };
  }

  joinAt(path: RunPath, context: Context): Record<string, string> {
    return { Location: `${this.#path(path)}/join${queryOf(context)}` };
  }

  streamNew(run: Row, context: Context): Promise<Response> {
    const created = this.createdAt(run);
    // Where a client goes on when the connection breaks, with the query it had.
    const headers = { ...created, Location: `${created["Content-Location"]}/stream${queryOf(context)}` };
    return this.stream(async (gone) => this.#options.runs.eventsOfNew(run, gone), context, undefined, headers);
  }

  async stream(
    open: (gone: AbortSignal) => Promise<AsyncGenerator<StreamedEvent[]>>,
    context: Context,
    modes?: readonly string[],
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const gone = goneWith(context);
    const batches = await open(gone.signal);
    return sseResponse(batches, {
      modes,
      headers,
      gone,
      heartbeat_ms: this.#options.heartbeat_ms,
      onError: (error) => this.#log(error),
    });
  }

  waitForNew(run: Row, context: Context): Promise<Response> {
    const created = this.createdAt(run);
    const headers = { ...created, Location: `${created["Content-Location"]}/join${queryOf(context)}` };
    const gone = goneWith(context);
    return waitingResponse(this.#options.runs.outputOfNew(run, gone.signal), headers, gone, (error) =>
      this.#log(error),
    );
  }

  wait(path: RunPath, output: (gone: AbortSignal) => Promise<string>, context: Context): Promise<Response> {
    const gone = goneWith(context);
    return waitingResponse(output(gone.signal), this.joinAt(path, context), gone, (error) => this.#log(error));
  }

  #path({ thread_id, run_id }: RunPath): string {
    return `${this.#options.prefix}${thread_id === undefined ? "" : `/threads/${thread_id}`}/runs/${run_id}`;
  }

  #log(error: unknown): void {
    this.#options.log.warn({ error }, "an answer broke off");
  }
}

const queryOf = (context: Context): string => new URL(context.req.url).search;

/** Aborted when the client of this request is gone. */
function goneWith(context: Context): AbortController {
  const gone = new AbortController();
  const { signal } = context.req.raw;
  if (signal.aborted) gone.abort(signal.reason);
  else signal.addEventListener("abort", () => gone.abort(signal.reason), { once: true });
  return gone;
}
