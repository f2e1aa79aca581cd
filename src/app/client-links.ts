import type { Context } from "hono";
import type { App } from "../platform/http/route.ts";

/** The official command lines are given the control plane's second address, and print links below what they were given. */
const HOSTS = ["", "/api-host"] as const;

/**
 * The addresses that the `langsmith` client and `deploy` of the official command lines print lead to the pages of the web app. The
 * workspace in them is not looked at: whoever opens one sees what their key shows them.
 */
export function serveClientLinks(app: App, prefix: string): void {
  const to = (context: Context, path: string, query: Record<string, string> = {}) => {
    const search = new URLSearchParams(query).toString();
    return context.redirect(`${prefix}/app${path}${search && `?${search}`}`);
  };

  app.get("/o/:tenant/datasets", (context) => to(context, "/experiments"));
  app.get("/o/:tenant/datasets/:id", (context) => to(context, datasetOf(context)));
  app.get("/o/:tenant/datasets/:id/e/:example", (context) =>
    to(context, datasetOf(context), { example: context.req.param("example") }),
  );
  app.get("/o/:tenant/datasets/:id/compare", (context) =>
    to(context, `${datasetOf(context)}/compare`, {
      // One parameter with commas, or one for each.
      experiments: (context.req.queries("selectedSessions") ?? []).join(","),
    }),
  );
  app.get("/o/:tenant/projects", (context) => to(context, "/experiments"));
  app.get("/o/:tenant/projects/p/:id", (context) => to(context, sessionOf(context)));
  app.get("/o/:tenant/projects/p/:id/r/:run", (context) =>
    to(context, sessionOf(context), { run: context.req.param("run") }),
  );
  for (const host of HOSTS) {
    app.get(`${host}/o/:tenant/host/deployments`, (context) => to(context, "/deployments"));
    app.get(`${host}/o/:tenant/host/deployments/:id`, (context) => to(context, `/deployments/${part(context, "id")}`));
  }
}

const datasetOf = (context: Context) => `/experiments/datasets/${part(context, "id")}`;
const sessionOf = (context: Context) => `/experiments/sessions/${part(context, "id")}`;
const part = (context: Context, name: string) => encodeURIComponent(context.req.param(name) ?? "");
