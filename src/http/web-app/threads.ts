import type { Threads } from "../../agents/threads.ts";
import { appThreadRoutes } from "../../contract/app/threads.ts";
import { type App, serve } from "../route.ts";
import { pageHeaders, selectThreads } from "../select.ts";

/** What the pages ask of threads and no route of the agent server answers. */
export function serveAppThreads(app: App, threads: Threads): void {
  serve(app, appThreadRoutes.searchThreadsByText, async ({ caller, body, context }) => {
    const found = await threads.search(caller, body);
    return context.json(selectThreads(found, body), 200, pageHeaders(body, found.length));
  });
}
