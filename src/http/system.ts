import { agentServerInfo, agentServerRoutes } from "../contract/routes.ts";
import type { ServerInfo } from "../contract/system.ts";
import { type ApiDocument, docsPage } from "./docs-page.ts";
import { type App, serve } from "./route.ts";

export interface SystemOptions {
  info: ServerInfo;
  /** Rejects when the database does not answer. */
  checkDatabase(): Promise<unknown>;
}

export function serveSystem(app: App, { info, checkDatabase }: SystemOptions): void {
  serve(app, agentServerRoutes.system.ok, async ({ query, context }) => {
    if (query.check_db) await checkDatabase();
    return context.json({ ok: true });
  });

  serve(app, agentServerRoutes.system.info, ({ context }) => context.json(info));

  app.get("/openapi.json", (context) => context.json(app.getOpenAPI31Document(agentServerInfo)));
  app.get("/docs", (context) => context.html(docsPage(app.getOpenAPI31Document(agentServerInfo) as ApiDocument)));
}
