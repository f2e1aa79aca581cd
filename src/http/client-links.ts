import type { Context } from "hono";
import type { App } from "./route.ts";

/**
 * The addresses that the `langsmith` client prints lead to the pages of the web app. The workspace in them is not looked at: whoever
 * opens one sees what their key shows them.
 */
export function serveClientLinks(app: App, prefix: string): void {
  const to = (context: Context, path: string, query: Record<string, string> = {}) => {
    const search = new URLSearchParams(query).toString();
    return context.redirect(`${prefix}/app/experiments${path}${search && `?${search}`}`);
  };

  app.get("/o/:tenant/datasets", (context) => to(context, ""));
  app.get("/o/:tenant/datasets/:id", (context) => to(context, `/datasets/${part(context, "id")}`));
  app.get("/o/:tenant/datasets/:id/e/:example", (context) =>
    to(context, `/datasets/${part(context, "id")}`, { example: context.req.param("example") }),
  );
  app.get("/o/:tenant/datasets/:id/compare", (context) =>
    to(context, `/datasets/${part(context, "id")}/compare`, {
      // One parameter with commas, or one for each.
      experiments: (context.req.queries("selectedSessions") ?? []).join(","),
    }),
  );
  app.get("/o/:tenant/projects", (context) => to(context, ""));
  app.get("/o/:tenant/projects/p/:id", (context) => to(context, `/sessions/${part(context, "id")}`));
  app.get("/o/:tenant/projects/p/:id/r/:run", (context) =>
    to(context, `/sessions/${part(context, "id")}`, { run: context.req.param("run") }),
  );
}

const part = (context: Context, name: string) => encodeURIComponent(context.req.param(name) ?? "");
