import { clientAbortOf } from "../../platform/http/client-abort.ts";
import { jsonArrayResponse } from "../../platform/http/json-responses.ts";
import { type App, jsonText, serve } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { agentServerRoutes } from "../contract/routes.ts";
import type { ThreadRetention } from "../threads/thread-retention.ts";
import type { ThreadStates } from "../threads/thread-states.ts";
import type { Threads } from "../threads/threads.ts";
import { pageHeaders, selectThreads } from "./select.ts";
import { SseFormatter, sseResponse } from "./sse.ts";

export interface ThreadRoutesOptions {
  threads: Threads;
  thread_retention: ThreadRetention;
  states: ThreadStates;
  heartbeat_ms: number;
  log: Log;
}

export function serveThreads(
  app: App,
  { threads, thread_retention, states, heartbeat_ms, log }: ThreadRoutesOptions,
): void {
  const routes = agentServerRoutes.threads;
  const formatter = new SseFormatter();
  const onHistoryError = (error: unknown) => log.warn({ error }, "history response failed");

  serve(app, routes.createThread, async ({ caller, body, context }) =>
    context.json(await threads.create(caller, body)),
  );

  serve(app, routes.searchThreads, async ({ caller, body, context }) => {
    const found = await threads.search(caller, body);
    return context.json(selectThreads(found, body), 200, pageHeaders(body, found.length));
  });

  serve(app, routes.countThreads, async ({ caller, body, context }) => context.json(await threads.count(caller, body)));

  serve(app, routes.pruneThreads, async ({ caller, body, context }) =>
    context.json({ pruned_count: await thread_retention.prune(caller, body) }),
  );

  serve(app, routes.getThread, async ({ caller, params, query, context }) =>
    context.json(await threads.get(caller, params.thread_id, query)),
  );

  serve(app, routes.getThreadStorage, async ({ caller, params, context }) =>
    context.json(await thread_retention.storage(caller, params.thread_id)),
  );

  serve(app, routes.patchThread, async ({ caller, params, headers, body, context }) => {
    const thread = await threads.patch(caller, params.thread_id, body);
    return headers.Prefer === "return=minimal" ? context.body(null, 204) : context.json(thread);
  });

  serve(app, routes.deleteThread, async ({ caller, params, context }) => {
    await threads.delete(caller, params.thread_id);
    return context.body(null, 204);
  });

  serve(app, routes.copyThread, async ({ caller, params, context }) =>
    context.json(await threads.copy(caller, params.thread_id)),
  );

  serve(app, routes.streamThread, async ({ caller, params, query, headers, context }) => {
    const client = clientAbortOf(context);
    const modes = query.stream_mode ?? query.stream_modes ?? ["run_modes"];
    const after = headers["Last-Event-ID"] || undefined;
    const events = await threads.events(caller, params.thread_id, modes, after, client.signal);
    return sseResponse(events, {
      headers: { Location: `/threads/${params.thread_id}/stream${new URL(context.req.url).search}` },
      client,
      heartbeat_ms,
      formatter,
      onError: (error) => log.warn({ error }, "thread stream failed"),
    });
  });

  serve(app, routes.getThreadState, async ({ caller, params, query }) =>
    jsonText(await states.get(caller, params.thread_id, {}, query)),
  );

  serve(app, routes.getThreadStateAt, async ({ caller, params: { thread_id, checkpoint_id }, query }) =>
    jsonText(await states.get(caller, thread_id, { checkpoint_id }, query)),
  );

  serve(app, routes.getThreadStateAtCheckpoint, async ({ caller, params, body }) =>
    jsonText(await states.get(caller, params.thread_id, body.checkpoint, body)),
  );

  serve(app, routes.updateThreadState, async ({ caller, params, body, context }) =>
    context.json(await states.update(caller, params.thread_id, body)),
  );

  serve(app, routes.getThreadHistory, async ({ caller, params, query }) =>
    jsonArrayResponse(states.history(caller, params.thread_id, query), onHistoryError),
  );

  serve(app, routes.postThreadHistory, async ({ caller, params, body }) =>
    jsonArrayResponse(states.history(caller, params.thread_id, body), onHistoryError),
  );
}
