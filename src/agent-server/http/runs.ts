import type { Context } from "hono";
import type { Caller } from "../../platform/contract/caller.ts";
import { ApiError } from "../../platform/errors.ts";
import { type ClientAbort, clientAbortOf } from "../../platform/http/client-abort.ts";
import { keepAliveResponse } from "../../platform/http/json-responses.ts";
import { type App, type Env, serve } from "../../platform/http/route.ts";
import type { SelectHeaders } from "../../platform/lib/header-selection.ts";
import type { Log } from "../../platform/lib/log.ts";
import { toRun } from "../auth/run-access.ts";
import { agentServerRoutes } from "../contract/routes.ts";
import type { OnDisconnect, StatelessRunCreate } from "../contract/runs.ts";
import { webhookRoutes } from "../contract/webhooks.ts";
import type { Cancellations, StreamedEvent } from "../engine/index.ts";
import type { Disconnects } from "../runs/disconnects.ts";
import type { RunPath, Runs } from "../runs/runs.ts";
import type { WebhookDeliveries } from "../webhooks/webhook-deliveries.ts";
import { selectFields } from "./select.ts";
import { SseFormatter, type SseOptions, sseResponse } from "./sse.ts";
import { withHeadersOf } from "./trace-headers.ts";

export interface RunRoutesOptions {
  runs: Runs;
  cancellations: Cancellations;
  disconnects: Disconnects;
  heartbeat_ms: number;
  /** Headers that become configurable values of new runs. */
  configurable_headers: SelectHeaders | undefined;
  log: Log;
}

export function serveRuns(app: App, options: RunRoutesOptions): void {
  const { runs, cancellations } = options;
  const routes = agentServerRoutes.runs;
  const responses = new RunResponses(options);
  const withHeaders = withHeadersOf(options.configurable_headers);

  serve(app, routes.createRun, async ({ caller, params, body, context }) => {
    const run = await runs.create(caller, params.thread_id, withHeaders(body, context));
    return context.json(toRun(run), 200, responses.createdAt(run));
  });

  serve(app, routes.createRunStream, async ({ caller, params, query, body, context }) => {
    const run = await runs.create(caller, params.thread_id, withHeaders(body, context));
    return responses.streamNew(run, run, context, isCancelledOnDisconnect(body, query));
  });

  serve(app, routes.createRunWait, async ({ caller, params, query, body, context }) => {
    const run = await runs.create(caller, params.thread_id, withHeaders(body, context));
    return responses.waitForNew(run, run, context, isCancelledOnDisconnect(body, query));
  });

  serve(app, routes.listRuns, async ({ caller, params, query, context }) =>
    context.json(selectFields(await runs.list(caller, params.thread_id, query), query.select)),
  );

  serve(app, routes.getRun, async ({ caller, params, context }) => context.json(await runs.get(caller, params)));

  serve(app, routes.deleteRun, async ({ caller, params, context }) => {
    await runs.delete(caller, params.thread_id, params.run_id);
    return context.body(null, 204);
  });

  serve(app, routes.joinRun, (request) => responses.join(request));

  serve(app, routes.joinRunStream, (request) => responses.joinStream(request));

  serve(app, routes.cancelRun, async ({ caller, params, query, context }) => {
    const { action, reason = null, wait } = query;
    const { thread_id, run_id } = params;
    const client = clientAbortOf(context);
    const intent = { action, reason };
    const unwatch = client.watchAccess();
    await cancellations.cancel(caller, thread_id, run_id, intent, wait ? client.signal : undefined).finally(unwatch);
    return context.body(null, wait ? 204 : 202, wait ? responses.joinAt(params, context) : {});
  });

  serve(app, routes.cancelRuns, async ({ caller, query, body, context }) => {
    await cancellations.cancelMany(caller, body, { action: query.action, reason: null });
    return context.body(null, 204);
  });

  serve(app, routes.createStatelessRun, async ({ caller, body, context }) => {
    const run = await createOne(runs, caller, withHeaders(body, context));
    return context.json(toRun(run), 200, responses.createdAt({ run_id: run.run_id }));
  });

  serve(app, routes.createStatelessRunStream, async ({ caller, query, body, context }) => {
    const run = await createOne(runs, caller, withHeaders(body, context));
    return responses.streamNew(run, { run_id: run.run_id }, context, isCancelledOnDisconnect(body, query));
  });

  serve(app, routes.createStatelessRunWait, async ({ caller, query, body, context }) => {
    const run = await createOne(runs, caller, withHeaders(body, context));
    return responses.waitForNew(run, { run_id: run.run_id }, context, isCancelledOnDisconnect(body, query));
  });

  serve(app, routes.createRunBatch, async ({ caller, body, context }) =>
    context.json(
      (
        await runs.createStateless(
          caller,
          body.map((one) => withHeaders(one, context)),
        )
      ).map(toRun),
    ),
  );

  serve(app, routes.joinStatelessRun, (request) => responses.join(request));

  serve(app, routes.joinStatelessRunStream, (request) => responses.joinStream(request));
}

async function createOne(runs: Runs, caller: Caller, body: StatelessRunCreate) {
  const [run] = await runs.createStateless(caller, [body]);
  if (!run) throw new ApiError("internal");
  return run;
}

/** Returns the position in `Last-Event-ID`: undefined without the header, 0 for `-1` (all events). */
function lastSeen(id: string | undefined): number | undefined {
  if (id === undefined || id === "") return undefined;
  if (id === "-1") return 0;
  if (/^\d{1,15}$/.test(id)) return Number(id);
  throw new ApiError("invalid_request", {
    reason: `header.Last-Event-ID: must be an event ID (a whole number), or -1 for all events, but is "${id}"`,
  });
}

type NewRun = Parameters<Runs["eventsOfNew"]>[0];

interface DisconnectOptions {
  on_disconnect?: OnDisconnect;
  cancel_on_disconnect?: boolean;
}

interface Join {
  caller: Caller;
  params: RunPath;
  query: DisconnectOptions;
  context: Context<Env>;
}

interface JoinStream extends Join {
  query: DisconnectOptions & { stream_mode?: readonly string[] };
  headers: { "Last-Event-ID"?: string };
}

/** Whether a disconnect cancels the run: the first option that is set decides; the default is false. */
function isCancelledOnDisconnect(...options: DisconnectOptions[]): boolean {
  for (const { on_disconnect, cancel_on_disconnect } of options) {
    if (on_disconnect !== undefined) return on_disconnect === "cancel";
    if (cancel_on_disconnect !== undefined) return cancel_on_disconnect;
  }
  return false;
}

/** The responses of run routes: a stream or an awaited output, with location headers. */
class RunResponses {
  readonly #options: RunRoutesOptions;
  readonly #formatter = new SseFormatter();

  constructor(options: RunRoutesOptions) {
    this.#options = options;
  }

  /** Clients parse the run's id from the end of this path, so nothing may follow it. */
  createdAt(path: RunPath): Record<string, string> {
    return { "Content-Location": pathOf(path) };
  }

  joinAt(path: RunPath, context: Context, cancel = false): Record<string, string> {
    return { Location: `${pathOf(path)}/join${queryOf(context, cancel)}` };
  }

  #streamAt(path: RunPath, context: Context, cancel: boolean): Record<string, string> {
    return { Location: `${pathOf(path)}/stream${queryOf(context, cancel)}` };
  }

  streamNew(run: NewRun, path: RunPath, context: Context<Env>, cancel: boolean): Response {
    const client = clientAbortOf(context);
    if (cancel) this.#options.disconnects.watch(run, client.signal);
    const headers = { ...this.createdAt(path), ...this.#streamAt(path, context, cancel) };
    const selection = { namespaces: namespacesIn(context) };
    return this.#stream(this.#options.runs.eventsOfNew(run, client.signal), selection, headers, client);
  }

  async joinStream({ caller, params, query, headers, context }: JoinStream): Promise<Response> {
    const after = lastSeen(headers["Last-Event-ID"]);
    const client = clientAbortOf(context);
    const { run, events } = await this.#options.runs.events(caller, params, after, client.signal);
    const cancel = this.#onJoin(run, client, query);
    const selection = { modes: query.stream_mode, namespaces: namespacesIn(context) };
    return this.#stream(events, selection, this.#streamAt(params, context, cancel), client);
  }

  /** @returns whether the disconnect of this client cancels the run */
  #onJoin(run: NewRun, client: ClientAbort, query: DisconnectOptions): boolean {
    this.#options.disconnects.onConnect(run.run_id);
    const cancel = isCancelledOnDisconnect(query);
    if (cancel) this.#options.disconnects.watch(run, client.signal);
    return cancel;
  }

  #stream(
    events: AsyncGenerator<readonly StreamedEvent[]>,
    selection: Pick<SseOptions, "modes" | "namespaces">,
    headers: Record<string, string>,
    client: ClientAbort,
  ): Response {
    const { heartbeat_ms } = this.#options;
    const shared = { heartbeat_ms, formatter: this.#formatter, onError: this.#onError };
    return sseResponse(events, { ...shared, ...selection, headers, client });
  }

  waitForNew(run: NewRun, path: RunPath, context: Context<Env>, cancel: boolean): Promise<Response> {
    const client = clientAbortOf(context);
    if (cancel) this.#options.disconnects.watch(run, client.signal);
    const headers = { ...this.createdAt(path), ...this.joinAt(path, context, cancel) };
    const output = this.#options.runs.output(run, client.signal, { isNew: true });
    return keepAliveResponse(output, headers, client, this.#onError);
  }

  async join({ caller, params, query, context }: Join): Promise<Response> {
    const client = clientAbortOf(context);
    const run = await this.#options.runs.find(caller, params);
    const headers = this.joinAt(params, context, this.#onJoin(run, client, query));
    return keepAliveResponse(this.#options.runs.output(run, client.signal), headers, client, this.#onError);
  }

  readonly #onError = (error: unknown): void => this.#options.log.warn({ error }, "response failed");
}

/** The query of a route has no empty values, and the namespace of the root graph is empty. */
const namespacesIn = (context: Context): string[] | undefined => context.req.queries("namespace");

/** Returns a path relative to the client's base URL: the client prepends that URL, including any path prefix. */
const pathOf = ({ thread_id, run_id }: RunPath): string =>
  `${thread_id === undefined ? "" : `/threads/${thread_id}`}/runs/${run_id}`;

/** Returns the query string for the location, with the disconnect option of the request body, because GET requests have no body. */
function queryOf(context: Context, cancel: boolean): string {
  const { search, searchParams } = new URL(context.req.url);
  const isCancel = (name: string) => ["cancel", "true", "1"].includes(searchParams.get(name) ?? "");
  if ((isCancel("on_disconnect") || isCancel("cancel_on_disconnect")) === cancel) return search;
  searchParams.delete("on_disconnect");
  searchParams.delete("cancel_on_disconnect");
  if (cancel) searchParams.set("cancel_on_disconnect", "true");
  return searchParams.size === 0 ? "" : `?${searchParams}`;
}

export function serveWebhooks(app: App, webhooks: WebhookDeliveries): void {
  serve(app, webhookRoutes.listWebhookDeliveries, async ({ caller, query, context }) =>
    context.json(await webhooks.list(caller, query)),
  );

  serve(app, webhookRoutes.redeliverWebhook, async ({ caller, params, context }) =>
    context.json(await webhooks.redeliver(caller, params.run_id)),
  );
}
