import { agentServerInfo, agentServerRoutes } from "../agent-server/contract/routes.ts";
import type { ServerInfo } from "../agent-server/contract/system.ts";
import { type ApiDocument, docsPage } from "../platform/http/docs-page.ts";
import { type App, serve } from "../platform/http/route.ts";

export interface SystemOptions {
  info: ServerInfo;
  /** Set when nothing but the agent server is to be served. */
  only: "agents" | undefined;
  /** Path prefix of all routes; empty for none. */
  prefix: string;
  /**
   * @param asks whether to ask the database, too, and not only for what is known of it
   * @throws DatabaseUnavailableError
   */
  checkDatabase(options: { asks: boolean }): Promise<unknown>;
}

export function serveSystem(app: App, { info, only, prefix, checkDatabase }: SystemOptions): void {
  serve(app, agentServerRoutes.system.ok, async ({ query, context }) => {
    await checkDatabase({ asks: query.check_db === true });
    return context.json({ ok: true });
  });

  serve(app, agentServerRoutes.system.info, ({ context }) => context.json(info));

  // Who opens the address that the program prints wants to know what is there: people by looking, programs by reading.
  app.get("/", (context) => {
    const isBrowser = context.req.header("accept")?.includes("text/html") ?? false;
    return context.redirect(isBrowser && !only ? `${prefix}/app` : `${prefix}/docs`);
  });
  app.get("/openapi.json", (context) => context.json(app.getOpenAPI31Document(agentServerInfo)));
  app.get("/docs", (context) => context.html(docsPage(app.getOpenAPI31Document(agentServerInfo) as ApiDocument)));
}
