import { goneWith } from "../../platform/http/client-abort.ts";
import { jsonItems } from "../../platform/http/json-items.ts";
import { type App, jsonText, serve } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { agentServerRoutes } from "../contract/routes.ts";
import type { ThreadStates } from "../thread-states.ts";
import type { Threads } from "../threads.ts";
import { pageHeaders, selectThreads } from "./select.ts";
import { sseResponse } from "./sse.ts";

export interface ThreadRoutesOptions {
  threads: Threads;
  states: ThreadStates;
  heartbeat_ms: number;
  log: Log;
}

export function serveThreads(app: App, { threads, states, heartbeat_ms, log }: ThreadRoutesOptions): void {
  const routes = agentServerRoutes.threads;
  const onBreak = (error: unknown) => log.warn({ error }, "a thread's history broke off");

  serve(app, routes.createThread, async ({ caller, body, context }) =>
    context.json(await threads.create(caller, body)),
  );

  serve(app, routes.searchThreads, async ({ caller, body, context }) => {
    const found = await threads.search(caller, body);
    return context.json(selectThreads(found, body), 200, pageHeaders(body, found.length));
  });

  serve(app, routes.countThreads, async ({ caller, body, context }) => context.json(await threads.count(caller, body)));

  serve(app, routes.getThread, async ({ caller, params, context }) =>
    context.json(await threads.get(caller, params.thread_id)),
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
    const gone = goneWith(context);
    const modes = query.stream_mode ?? query.stream_modes ?? ["run_modes"];
    const events = await threads.events(
      caller,
      params.thread_id,
      modes,
      headers["Last-Event-ID"] || undefined,
      gone.signal,
    );
    return sseResponse(events, {
      headers: { Location: `/threads/${params.thread_id}/stream${new URL(context.req.url).search}` },
      gone,
      heartbeat_ms,
      onError: (error) => log.warn({ error }, "a thread's stream broke off"),
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
    jsonItems(states.history(caller, params.thread_id, query), onBreak),
  );

  serve(app, routes.postThreadHistory, async ({ caller, params, body }) =>
    jsonItems(states.history(caller, params.thread_id, body), onBreak),
  );
}
