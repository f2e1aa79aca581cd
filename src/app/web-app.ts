import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Context, MiddlewareHandler } from "hono";
import { html } from "hono/html";
import { appRunRoutes } from "../agent-server/contract/app-runs.ts";
import { appThreadRoutes } from "../agent-server/contract/app-threads.ts";
import { pageHeaders, selectThreads } from "../agent-server/http/select.ts";
import type { RunOverview, Threads } from "../agent-server/index.ts";
import { comparisonPageRoutes } from "../experiments/contract/app-comparison.ts";
import type { ExperimentsService } from "../experiments/index.ts";
import { fastapiErrors } from "../platform/http/fastapi.ts";
import { type App, handleRoute, jsonText, serve } from "../platform/http/route.ts";
import { webAppRoutes } from "./contract/web-app.ts";

export interface WebAppOptions {
  /** Path prefix of all routes; empty for none. */
  prefix: string;
  /** Folder of the built pages; it may not exist. */
  web_dir: string;
  run_overview: RunOverview;
  threads: Threads;
  experiments: ExperimentsService;
}

/**
 * Only resources of this origin, only scripts with the nonce of the page and their imports, no workers: /deployments serves code of other
 * parties on this origin. Styles may be inline because libraries add <style> elements at run time (an open dialog disables scrolling).
 */
const policyWith = (nonce: string): string =>
  [
    "default-src 'self'",
    `script-src 'nonce-${nonce}' 'strict-dynamic'`,
    "worker-src 'none'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");

const HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
};

/** Serves the web app at /app. The pages need no key because they contain no data; they read data from the APIs with the user's key. */
export function serveWebApp(app: App, options: WebAppOptions): void {
  const { prefix, web_dir } = options;
  serveWebQueries(app, options);
  serveClientLinks(app, prefix);

  const page = pageHandler(web_dir, prefix);
  const files = fileHandler(web_dir, prefix);
  app.get("/app", page);
  app.get("/app/*", (context, next) => {
    const { path } = context.req;
    if (path.startsWith(`${prefix}/app/api/`)) return next();
    return isFile(path) ? files(context, next) : page(context);
  });
}

/** The paths of pages have no file extension. */
const isFile = (path: string): boolean => /\.(js|css|svg|woff2|json|png)$/.test(path);

/** Serves the single page for every path below /app; the page routes by its address. */
const pageHandler = (web_dir: string, prefix: string) => async (context: Context) => {
  for (const [name, value] of Object.entries(HEADERS)) context.header(name, value);
  context.header("cache-control", "no-cache");
  const text = await readFile(join(web_dir, "index.html"), "utf8").catch(() => undefined);
  const nonce = randomBytes(16).toString("base64");
  context.header("content-security-policy", policyWith(nonce));
  if (text === undefined) return context.html(notBuilt, 503);
  return context.html(text.replaceAll('="./', `="${prefix}/app/`).replaceAll('"NONCE"', `"${nonce}"`));
};

/** Files below /assets have a hash of their content in the name, so browsers cache them without revalidation. */
function fileHandler(web_dir: string, prefix: string): MiddlewareHandler {
  let handler: Promise<MiddlewareHandler> | undefined;
  return async (context, next) => {
    // Loaded with the first page, to keep the start of the service fast.
    handler ??= import("@hono/node-server/serve-static").then(({ serveStatic }) =>
      serveStatic({
        root: web_dir,
        precompressed: true,
        rewriteRequestPath: (path) => path.slice(`${prefix}/app`.length),
        onFound(_, found) {
          const isImmutable = found.req.path.startsWith(`${prefix}/app/assets/`);
          found.header("cache-control", isImmutable ? "public, max-age=31536000, immutable" : "no-cache");
          found.header("x-content-type-options", "nosniff");
        },
      }),
    );
    return (await handler)(context, next);
  };
}

const notBuilt = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Threadmill</title></head>
<body><h1>The web app is not built</h1>
<p>Run <code>npm run build</code> in the source tree and reload this page. The APIs work without the web app.</p>
</body>
</html>`;

/** The official command lines use the second address of the control plane as base of the links that they print. */
const CLIENT_BASES = ["", "/api-host"] as const;

/**
 * Redirects the links that the `langsmith` client and `deploy` of the official command lines print to the pages of the web app. The
 * workspace in a link is ignored: the page shows the data that the user's key may read.
 */
function serveClientLinks(app: App, prefix: string): void {
  const redirect = (context: Context, path: string, query: Record<string, string> = {}) => {
    const search = new URLSearchParams(query).toString();
    return context.redirect(`${prefix}/app${path}${search && `?${search}`}`);
  };

  app.get("/o/:tenant/datasets", (context) => redirect(context, "/experiments"));
  app.get("/o/:tenant/datasets/:id", (context) => redirect(context, datasetPath(context)));
  app.get("/o/:tenant/datasets/:id/e/:example", (context) =>
    redirect(context, datasetPath(context), { example: context.req.param("example") }),
  );
  app.get("/o/:tenant/datasets/:id/compare", (context) =>
    redirect(context, `${datasetPath(context)}/compare`, {
      // Clients send one parameter with commas, or one per session.
      experiments: (context.req.queries("selectedSessions") ?? []).join(","),
    }),
  );
  app.get("/o/:tenant/projects", (context) => redirect(context, "/experiments"));
  app.get("/o/:tenant/projects/p/:id", (context) => redirect(context, sessionPath(context)));
  app.get("/o/:tenant/projects/p/:id/r/:run", (context) =>
    redirect(context, sessionPath(context), { run: context.req.param("run") }),
  );
  for (const base of CLIENT_BASES) {
    app.get(`${base}/o/:tenant/host/deployments`, (context) => redirect(context, "/deployments"));
    app.get(`${base}/o/:tenant/host/deployments/:id`, (context) =>
      redirect(context, `/deployments/${encodedId(context)}`),
    );
  }
}

const datasetPath = (context: Context) => `/experiments/datasets/${encodedId(context)}`;
const sessionPath = (context: Context) => `/experiments/sessions/${encodedId(context)}`;
const encodedId = (context: Context) => encodeURIComponent(context.req.param("id") ?? "");

/** Serves /app/api: the queries of the web app that no public API has. */
function serveWebQueries(app: App, { run_overview, threads, experiments }: WebAppOptions): void {
  handleRoute(
    app,
    webAppRoutes.getSession,
    ({ caller: { user_id, tenant_id, scopes }, context }) => context.json({ user_id, tenant_id, scopes: [...scopes] }),
    fastapiErrors,
  );

  handleRoute(
    app,
    appRunRoutes.listAllRuns,
    async ({ caller, query, context }) => context.json(await run_overview.list(caller, query)),
    fastapiErrors,
  );

  handleRoute(
    app,
    appRunRoutes.getRunThroughput,
    async ({ caller, context }) => context.json(await run_overview.throughput(caller)),
    fastapiErrors,
  );

  serve(app, appThreadRoutes.searchThreadsByText, async ({ caller, body, context }) => {
    const found = await threads.search(caller, body);
    return context.json(selectThreads(found, body), 200, pageHeaders(body, found.length));
  });

  const { comparedRows, distributions } = experiments;

  handleRoute(
    app,
    comparisonPageRoutes.readComparedRows,
    async ({ caller, params, body }) => jsonText((await comparedRows.read(caller, params.dataset_id, body)).json),
    fastapiErrors,
  );

  handleRoute(
    app,
    comparisonPageRoutes.readDistributions,
    async ({ caller, params, body }) => jsonText((await distributions.read(caller, params.dataset_id, body)).json),
    fastapiErrors,
  );
}
