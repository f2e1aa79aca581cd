import { ApiError } from "../../platform/errors.ts";
import { goneWith } from "../../platform/http/client-abort.ts";
import { type App, serve } from "../../platform/http/route.ts";
import type { Cancellations } from "../cancellations.ts";
import { agentServerRoutes } from "../contract/routes.ts";
import { type Runs, toRun } from "../runs.ts";
import { type AnswerOptions, isToCancel, RunAnswers } from "./run-answers.ts";
import { selectFields } from "./select.ts";

export interface RunRoutesOptions extends AnswerOptions {
  cancellations: Cancellations;
}

export function serveRuns(app: App, options: RunRoutesOptions): void {
  const { runs, cancellations } = options;
  const routes = agentServerRoutes.runs;
  const answer = new RunAnswers(options);

  serve(app, routes.createRun, async ({ caller, params, body, context }) => {
    const run = await runs.create(caller, params.thread_id, body);
    return context.json(toRun(run), 200, answer.createdAt(run));
  });

  serve(app, routes.createRunStream, async ({ caller, params, query, body, context }) => {
    const run = await runs.create(caller, params.thread_id, body);
    return answer.streamNew(run, run, context, isToCancel(body, query));
  });

  serve(app, routes.createRunWait, async ({ caller, params, query, body, context }) => {
    const run = await runs.create(caller, params.thread_id, body);
    return answer.waitForNew(run, run, context, isToCancel(body, query));
  });

  serve(app, routes.listRuns, async ({ caller, params, query, context }) =>
    context.json(selectFields(await runs.list(caller, params.thread_id, query), query.select)),
  );

  serve(app, routes.getRun, async ({ caller, params, context }) => context.json(await runs.get(caller, params)));

  serve(app, routes.deleteRun, async ({ caller, params, context }) => {
    await runs.delete(caller, params.thread_id, params.run_id);
    return context.body(null, 204);
  });

  serve(app, routes.joinRun, ({ caller, params, query, context }) =>
    answer.join({ caller, path: params, context, cancel: isToCancel(query) }),
  );

  serve(app, routes.joinRunStream, ({ caller, params, query, headers, context }) => {
    const after = lastSeen(headers["Last-Event-ID"]);
    return answer.joinStream({ caller, path: params, context, cancel: isToCancel(query) }, after, query.stream_mode);
  });

  serve(app, routes.cancelRun, async ({ caller, params, query, context }) => {
    const { action, reason = null, wait } = query;
    const { thread_id, run_id } = params;
    const gone = goneWith(context);
    const intent = { action, reason };
    const unwatch = gone.watchAccess();
    await cancellations.cancel(caller, thread_id, run_id, intent, wait ? gone.signal : undefined).finally(unwatch);
    return context.body(null, query.wait ? 204 : 202, query.wait ? answer.joinAt(params, context) : {});
  });

  serve(app, routes.cancelRuns, async ({ caller, query, body, context }) => {
    await cancellations.cancelMany(caller, body, { action: query.action, reason: null });
    return context.body(null, 204);
  });

  serve(app, routes.createStatelessRun, async ({ caller, body, context }) => {
    const run = await createOne(runs, caller, body);
    return context.json(toRun(run), 200, answer.createdAt({ run_id: run.run_id }));
  });

  serve(app, routes.createStatelessRunStream, async ({ caller, query, body, context }) => {
    const run = await createOne(runs, caller, body);
    return answer.streamNew(run, { run_id: run.run_id }, context, isToCancel(body, query));
  });

  serve(app, routes.createStatelessRunWait, async ({ caller, query, body, context }) => {
    const run = await createOne(runs, caller, body);
    return answer.waitForNew(run, { run_id: run.run_id }, context, isToCancel(body, query));
  });

  serve(app, routes.createRunBatch, async ({ caller, body, context }) =>
    context.json((await runs.createStateless(caller, body)).map(toRun)),
  );

  serve(app, routes.joinStatelessRun, ({ caller, params, query, context }) =>
    answer.join({ caller, path: params, context, cancel: isToCancel(query) }),
  );

  serve(app, routes.joinStatelessRunStream, ({ caller, params, query, headers, context }) => {
    const after = lastSeen(headers["Last-Event-ID"]);
    return answer.joinStream({ caller, path: params, context, cancel: isToCancel(query) }, after, query.stream_mode);
  });
}

type StatelessArguments = Parameters<Runs["createStateless"]>;

async function createOne(runs: Runs, caller: StatelessArguments[0], body: StatelessArguments[1][number]) {
  const [run] = await runs.createStateless(caller, [body]);
  if (!run) throw new ApiError("internal");
  return run;
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
