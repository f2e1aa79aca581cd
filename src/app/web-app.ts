import { hash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RouteConfig } from "@hono/zod-openapi";
import type { Context, MiddlewareHandler } from "hono";
import { html } from "hono/html";
import { appRunRoutes } from "../agent-server/contract/app-runs.ts";
import { appThreadRoutes } from "../agent-server/contract/app-threads.ts";
import { pageHeaders, selectThreads } from "../agent-server/http/select.ts";
import type { RunOverview, Threads } from "../agent-server/index.ts";
import { queuePageRoutes } from "../experiments/contract/annotation-queues/app-queues.ts";
import { comparisonPageRoutes } from "../experiments/contract/app-comparison.ts";
import { tracePageRoutes } from "../experiments/contract/traces/app-traces.ts";
import { pricePageRoutes } from "../experiments/contract/traces/prices.ts";
import type { ExperimentsService } from "../experiments/index.ts";
import { fastapiErrors } from "../platform/http/fastapi.ts";
import { type App, type Handler, handleRoute, jsonText, serve } from "../platform/http/route.ts";
import { webAppRoutes } from "./contract/web-app.ts";

export interface WebAppOptions {
  /** Path prefix of all routes, or an empty string. */
  prefix: string;
  /** Folder of the built pages. It may not exist. */
  web_dir: string;
  run_overview: RunOverview;
  threads: Threads;
  experiments: ExperimentsService;
}

/** Scripts require a nonce, because /deployments serves third-party code on this origin. Libraries require inline styles. */
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

/** Serves the web app at /app without a key. The pages contain no data; they read it from the APIs with the key of the user. */
export function serveWebApp(app: App, options: WebAppOptions): void {
  const { prefix, web_dir } = options;
  serveWebQueries(app, options);
  serveClientLinks(app, prefix);
  const page = pageHandler(web_dir, prefix);
  const files = fileHandler(web_dir, prefix);
  app.get("/app", page);
  app.get("/app/evaluator", evaluatorSandbox);
  app.get("/app/*", (context, next) => {
    const { path } = context.req;
    if (path.startsWith(`${prefix}/app/api/`)) return next();
    return FILE.test(path.slice(prefix.length)) ? files(context, next) : page(context);
  });
}

/** The paths of built files. A page path can have such an extension, too: a prompt can be named `answer.json`. */
const FILE = /^\/app\/(assets\/)?[^/]+\.(js|css|svg|woff2|json|png)$/;

/** All paths serve the same page, which selects its view from the URL. */
const pageHandler = (web_dir: string, prefix: string) => async (context: Context) => {
  context.header("x-content-type-options", "nosniff");
  context.header("referrer-policy", "same-origin");
  context.header("cache-control", "no-cache");
  const text = await readFile(join(web_dir, "index.html"), "utf8").catch(() => undefined);
  const nonce = randomBytes(16).toString("base64");
  context.header("content-security-policy", policyWith(nonce));
  if (text === undefined) return context.html(notBuilt, 503);
  return context.html(text.replaceAll('="./', `="${prefix}/app/`).replaceAll('"NONCE"', `"${nonce}"`));
};

/** Serves the built files. Names of files below /assets contain a hash of the content, so these files can be cached forever. */
function fileHandler(web_dir: string, prefix: string): MiddlewareHandler {
  let handler: Promise<MiddlewareHandler> | undefined;
  return async (context, next) => {
    // Loaded on the first request for a file, which shortens the startup.
    handler ??= import("@hono/node-server/serve-static").then(({ serveStatic }) =>
      serveStatic({
        root: web_dir,
        precompressed: true,
        rewriteRequestPath: (path) => path.slice(`${prefix}/app`.length),
      }),
    );
    const response = await (await handler)(context, next);
    if (!response) return;
    // Its option `onFound` is called after it has created the response, and then changes only responses of @hono/node-server.
    const isImmutable = context.req.path.startsWith(`${prefix}/app/assets/`);
    response.headers.set("cache-control", isImmutable ? "public, max-age=31536000, immutable" : "no-cache");
    response.headers.set("x-content-type-options", "nosniff");
    return response;
  };
}

const notBuilt = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Threadmill</title></head>
<body><h1>The web app is not built</h1>
<p>Run <code>npm run build</code> in the source tree and reload this page. The APIs work without the web app.</p>
</body>
</html>`;

/**
 * Runs the code evaluators of experiments. The document has an opaque origin, and its policy also applies to its worker: the code has no
 * access to the network, to the web app, or to stored data. The web app removes the document if the code does not end in time.
 */
const EVALUATOR_SCRIPT = `
const worker = () => {
  onmessage = async ({ data: { code, row }, ports: [port] }) => {
    try {
      const evaluate = new (async () => {}).constructor("run", "example", code);
      port.postMessage({ value: row && (await evaluate(row.run, row.example)) });
    } catch (error) {
      port.postMessage({ error: String(error?.name ?? "Error"), message: String(error?.message ?? error) });
    }
  };
};
onmessage = ({ data, ports }) => {
  const url = URL.createObjectURL(new Blob(["(" + worker + ")()"], { type: "text/javascript" }));
  new Worker(url).postMessage(data, ports);
};
`;

/** A policy of the web app that permits this would permit it for the code of the web app, too. */
const EVALUATOR_POLICY = [
  "sandbox allow-scripts",
  "default-src 'none'",
  `script-src 'sha256-${hash("sha256", EVALUATOR_SCRIPT, "base64")}' 'unsafe-eval'`,
  "worker-src blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
].join("; ");

const EVALUATOR_PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Evaluator</title><script>${EVALUATOR_SCRIPT}</script></html>`;

/** Each evaluation loads the document. */
const EVALUATOR_MAX_AGE_S = 300;

function evaluatorSandbox(context: Context) {
  context.header("content-security-policy", EVALUATOR_POLICY);
  context.header("x-content-type-options", "nosniff");
  context.header("cache-control", `max-age=${EVALUATOR_MAX_AGE_S}`);
  return context.html(EVALUATOR_PAGE);
}

/** Redirects links from the `langsmith` client and the official command-line tools to the web app. Ignores the workspace in a link. */
function serveClientLinks(app: App, prefix: string): void {
  const redirect = (context: Context, path: string, query: Record<string, string> = {}) => {
    const search = new URLSearchParams(query).toString();
    return context.redirect(`${prefix}/app${path}${search && `?${search}`}`);
  };

  const datasetPath = (context: Context) => `/experiments/datasets/${encoded(context, "id")}`;
  const sessionPath = (context: Context) => `/experiments/sessions/${encoded(context, "id")}`;
  app.get("/o/:tenant/datasets", (context) => redirect(context, "/experiments"));
  app.get("/o/:tenant/datasets/:id", (context) => redirect(context, datasetPath(context)));
  app.get("/o/:tenant/datasets/:id/e/:example", (context) =>
    redirect(context, datasetPath(context), { example: context.req.param("example") }),
  );
  app.get("/o/:tenant/datasets/:id/compare", (context) =>
    redirect(context, `${datasetPath(context)}/compare`, {
      // Clients send the IDs in one comma-separated parameter, or in one parameter per session.
      experiments: (context.req.queries("selectedSessions") ?? []).join(","),
    }),
  );
  app.get("/o/:tenant/projects", (context) => redirect(context, "/traces"));
  app.get("/o/:tenant/projects/p/:id", (context) => redirect(context, sessionPath(context)));
  app.get("/o/:tenant/projects/p/:id/r/:run", (context) => redirect(context, `/runs/${encoded(context, "run")}`));
  app.get("/prompts/:name", (context) => redirect(context, `/prompts/${encoded(context, "name")}`));
  app.get("/prompts/:name/:commit", (context) =>
    redirect(context, `/prompts/${encoded(context, "name")}/${encoded(context, "commit")}`),
  );
  app.get("/public/:token/r", (context) => redirect(context, `/public/${encoded(context, "token")}`));
  // Command-line tools also print links below `/api-host`, the second path of the control plane.
  for (const base of ["", "/api-host"]) {
    const deployments = `${base}/o/:tenant/host/deployments`;
    app.get(deployments, (context) => redirect(context, "/deployments"));
    app.get(`${deployments}/:id`, (context) => redirect(context, `/deployments/${encoded(context, "id")}`));
  }
}

const encoded = (context: Context, name: string) => encodeURIComponent(context.req.param(name) ?? "");

/** Serves the queries of the web app that are not part of a public API. */
function serveWebQueries(app: App, { run_overview, threads, experiments }: WebAppOptions): void {
  const { annotationQueues, comparedRows, distributions, reprice, tracePages } = experiments;
  const serveQuery = <R extends RouteConfig>(route: R, handler: Handler<R>) =>
    handleRoute(app, route, handler, fastapiErrors);

  serveQuery(webAppRoutes.getSession, ({ caller: { user_id, tenant_id, scopes }, context }) =>
    context.json({ user_id, tenant_id, scopes: [...scopes] }),
  );
  serveQuery(appRunRoutes.listAllRuns, async ({ caller, query, context }) =>
    context.json(await run_overview.list(caller, query)),
  );
  serveQuery(appRunRoutes.getRunPreviews, async ({ caller, query, context }) =>
    context.json(await run_overview.previews(caller, query.run_id)),
  );
  serveQuery(appRunRoutes.getRunThroughput, async ({ caller, context }) =>
    context.json(await run_overview.throughput(caller)),
  );
  serveQuery(appRunRoutes.getRunMonitoring, async ({ caller, query, context }) =>
    context.json(await run_overview.monitoring(caller, query)),
  );
  serveQuery(comparisonPageRoutes.readComparedRows, async ({ caller, params, body }) =>
    jsonText((await comparedRows.read(caller, params.dataset_id, body)).json),
  );
  serveQuery(comparisonPageRoutes.readDistributions, async ({ caller, params, body }) =>
    jsonText((await distributions.read(caller, params.dataset_id, body)).json),
  );
  serveQuery(tracePageRoutes.readTrace, async ({ caller, params, query }) =>
    jsonText((await tracePages.read(caller, params.trace_id, query.after)).json),
  );
  serveQuery(tracePageRoutes.listTraces, async ({ caller, body }) =>
    jsonText((await tracePages.list(caller, body)).json),
  );
  serveQuery(tracePageRoutes.readUsage, async ({ caller, body }) =>
    jsonText((await tracePages.usage(caller, body)).json),
  );
  serveQuery(queuePageRoutes.listQueueOverviews, async ({ caller, query }) =>
    jsonText((await annotationQueues.overview(caller, query)).json),
  );
  serveQuery(pricePageRoutes.reprice, async ({ caller, body }) =>
    jsonText((await reprice.session(caller, body.session_id, body.after)).json),
  );
  serve(app, appThreadRoutes.searchThreadsByText, async ({ caller, body, context }) => {
    const found = await threads.search(caller, body);
    return context.json(selectThreads(found, body), 200, pageHeaders(body, found.length));
  });
  serve(app, appThreadRoutes.countThreadsByText, async ({ caller, body, context }) =>
    context.json(await threads.count(caller, body)),
  );
}
