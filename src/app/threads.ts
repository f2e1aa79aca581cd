import { appThreadRoutes } from "../agent-server/contract/app-threads.ts";
import { pageHeaders, selectThreads } from "../agent-server/http/select.ts";
import type { Threads } from "../agent-server/index.ts";
import { type App, serve } from "../platform/http/route.ts";

/** What the pages ask of threads and no route of the agent server answers. */
export function serveAppThreads(app: App, threads: Threads): void {
  serve(app, appThreadRoutes.searchThreadsByText, async ({ caller, body, context }) => {
    const found = await threads.search(caller, body);
    return context.json(selectThreads(found, body), 200, pageHeaders(body, found.length));
  });
}
