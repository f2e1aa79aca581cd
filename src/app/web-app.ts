import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Context, MiddlewareHandler } from "hono";
import { html } from "hono/html";
import type { RunOverview, Threads } from "../agent-server/index.ts";
import type { ExperimentsService } from "../experiments/index.ts";
import { byPart } from "../platform/http/fastapi-errors.ts";
import { type App, answer } from "../platform/http/route.ts";
import { serveClientLinks } from "./client-links.ts";
import { serveComparisonPage } from "./comparison.ts";
import { webAppRoutes } from "./contract/web-app.ts";
import { serveAppRuns } from "./runs.ts";
import { serveAppThreads } from "./threads.ts";

export interface WebAppOptions {
  /** Path prefix of all routes; empty for none. */
  prefix: string;
  /** The folder of the built pages; it may not be there. */
  web_dir: string;
  run_overview: RunOverview;
  threads: Threads;
  experiments: ExperimentsService;
}

/**
 * Nothing from another host, no script but those that a page names itself and what they import, and no workers: below /deployments
 * code of others is on this origin. Libraries of the pages write rules into <style> elements (while a dialog is open the page behind
 * it must not scroll), so styles may be inline.
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

/** The pages at /app, which need no key, as they show nothing by themselves; what they show they ask of the APIs. */
export function serveWebApp(app: App, { prefix, web_dir, run_overview, threads, experiments }: WebAppOptions): void {
  answer(
    app,
    webAppRoutes.getSession,
    ({ caller: { user_id, tenant_id, scopes }, context }) => context.json({ user_id, tenant_id, scopes: [...scopes] }),
    byPart,
  );
  serveAppRuns(app, run_overview);
  serveAppThreads(app, threads);
  serveComparisonPage(app, experiments);
  serveClientLinks(app, prefix);

  const page = pageOf(web_dir, prefix);
  const files = filesOf(web_dir, prefix);
  app.get("/app", page);
  app.get("/app/*", (context, next) => {
    const { path } = context.req;
    if (path.startsWith(`${prefix}/app/api/`)) return next();
    return isFile(path) ? files(context, next) : page(context);
  });
}

/** Pages have addresses without a dot at the end; files have one. */
const isFile = (path: string): boolean => /\.(js|css|svg|woff2|json|png)$/.test(path);

/** Whatever the address below /app: the one page, which reads the address itself. */
const pageOf = (web_dir: string, prefix: string) => async (context: Context) => {
  for (const [name, value] of Object.entries(HEADERS)) context.header(name, value);
  context.header("cache-control", "no-cache");
  const text = await readFile(join(web_dir, "index.html"), "utf8").catch(() => undefined);
  const nonce = randomBytes(16).toString("base64");
  context.header("content-security-policy", policyWith(nonce));
  if (text === undefined) return context.html(notBuilt, 503);
  return context.html(text.replaceAll('="./', `="${prefix}/app/`).replaceAll('"NONCE"', `"${nonce}"`));
};

/** Files of /assets have a hash of what they hold in their names, so nobody needs to ask for them twice. */
function filesOf(web_dir: string, prefix: string): MiddlewareHandler {
  let serving: Promise<MiddlewareHandler> | undefined;
  return async (context, next) => {
    // Loaded when the first page is asked for, not at the start.
    serving ??= import("@hono/node-server/serve-static").then(({ serveStatic }) =>
      serveStatic({
        root: web_dir,
        precompressed: true,
        rewriteRequestPath: (path) => path.slice(`${prefix}/app`.length),
        onFound(_, found) {
          const forEver = found.req.path.startsWith(`${prefix}/app/assets/`);
          found.header("cache-control", forEver ? "public, max-age=31536000, immutable" : "no-cache");
          found.header("x-content-type-options", "nosniff");
        },
      }),
    );
    return (await serving)(context, next);
  };
}

const notBuilt = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Threadmill</title></head>
<body><h1>The web app is not built</h1>
<p>This is a source tree without the pages. Run <code>npm run build</code> in it and open this page again; the APIs are there already.</p>
</body>
</html>`;
