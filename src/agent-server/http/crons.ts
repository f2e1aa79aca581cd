import { type App, serve } from "../../platform/http/route.ts";
import { cronRoutes } from "../contract/crons.ts";
import type { Crons } from "../crons/crons.ts";
import { pageHeaders, selectFields } from "./select.ts";

export function serveCrons(app: App, crons: Crons): void {
  serve(app, cronRoutes.createCron, async ({ caller, body, context }) =>
    context.json(await crons.create(caller, body)),
  );

  serve(app, cronRoutes.createThreadCron, async ({ caller, params, body, context }) =>
    context.json(await crons.create(caller, body, params.thread_id)),
  );

  serve(app, cronRoutes.searchCrons, async ({ caller, body, context }) => {
    const found = await crons.search(caller, body);
    return context.json(selectFields(found, body.select), 200, pageHeaders(body, found.length));
  });

  serve(app, cronRoutes.countCrons, async ({ caller, body, context }) => context.json(await crons.count(caller, body)));

  serve(app, cronRoutes.getCron, async ({ caller, params, context }) =>
    context.json(await crons.get(caller, params.cron_id)),
  );

  serve(app, cronRoutes.patchCron, async ({ caller, params, body, context }) =>
    context.json(await crons.patch(caller, params.cron_id, body)),
  );

  serve(app, cronRoutes.deleteCron, async ({ caller, params, context }) => {
    await crons.delete(caller, params.cron_id);
    return context.json({});
  });
}
