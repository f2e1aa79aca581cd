import type { RouteConfig } from "@hono/zod-openapi";
import type { Context } from "hono";
import { html } from "hono/html";
import { ApiError } from "../../platform/errors.ts";
import { requestOrigin } from "../../platform/http/base-url.ts";
import { clientAbortOf } from "../../platform/http/client-abort.ts";
import { serveAt } from "../../platform/http/fastapi.ts";
import { keepAliveResponse } from "../../platform/http/json-responses.ts";
import { type App, type Checked, jsonHandler } from "../../platform/http/route.ts";
import type { Log } from "../../platform/lib/log.ts";
import { unlessAborted } from "../../platform/lib/signal.ts";
import { authServiceRoutes, authServiceRoutes as routes } from "../contract/routes.ts";
import type { CallbackParameters } from "../oauth/flow-callback.ts";
import type { Flows } from "../oauth/flows.ts";
import type { Vault } from "../vault.ts";

export interface AuthServiceAppOptions extends FlowRoutesOptions {
  vault: Vault;
}

/** @param mounts path prefixes under which the Auth Service is served */
export function serveAuthService(app: App, mounts: readonly string[], options: AuthServiceAppOptions): void {
  const { providers, tokens, connections, flows } = options.vault;
  const serve = <R extends RouteConfig>(route: R, run: (request: Checked<R>) => unknown) =>
    serveAt(app, mounts, route, jsonHandler(route, run));

  serveFlows(app, mounts, flows, options);

  serve(routes.providers.listProviders, ({ caller }) => providers.list(caller));
  serve(routes.providers.createProvider, ({ caller, body }) => providers.create(caller, body));
  serve(routes.providers.getProvider, ({ caller, params }) => providers.get(caller, params.provider_id));
  serve(routes.providers.updateProvider, ({ caller, params, body }) =>
    providers.update(caller, params.provider_id, body),
  );
  serve(routes.providers.deleteProvider, async ({ caller, params: { provider_id } }) => {
    await providers.delete(caller, provider_id);
    return { message: `OAuth provider '${provider_id}' deleted` };
  });
  serve(routes.providers.listPlatformProviders, () => []);

  serve(routes.tokens.listTokens, ({ caller, query }) => tokens.list(caller, query.provider_id));
  serve(routes.tokens.deleteTokens, ({ caller, query }) => tokens.deleteAll(caller, query.provider_id));
  serve(routes.tokens.checkTokenExists, async ({ caller, query: { provider_id } }) => ({
    has_token: (await tokens.exist(caller, [provider_id]))[provider_id],
  }));
  serve(routes.tokens.checkTokensExist, async ({ caller, body }) => ({
    has_token: await tokens.exist(caller, body.provider_ids),
  }));
  serve(routes.tokens.importToken, ({ caller, body }) => tokens.import(caller, body));
  serve(routes.tokens.updateToken, ({ caller, params, body }) => tokens.update(caller, params.token_id, body));
  serve(routes.tokens.deleteToken, ({ caller, params }) => tokens.delete(caller, params.token_id));
  serve(routes.tokens.listTokenEvents, ({ caller, query }) => tokens.events(caller, query.provider_id, query.limit));

  serve(routes.connections.listConnections, async ({ caller, params }) => ({
    data: await connections.list(caller, params.agent_id),
  }));
  serve(routes.connections.createConnection, ({ caller, params, body }) =>
    connections.create(caller, params.agent_id, body.oauth_token_id),
  );
  serve(routes.connections.removeConnection, ({ caller, params }) =>
    connections.remove(caller, params.agent_id, params.connection_id),
  );
  serve(routes.connections.putAgentToken, ({ caller, params, body }) => connections.putToken(caller, params, body));
}

interface FlowRoutesOptions {
  public_url: string | undefined;
  /** Allowed host names in addition to loopback names; undefined if the server does not listen on loopback. */
  allowed_hosts: readonly string[] | undefined;
  prefix: string;
  log: Log;
}

function serveFlows(app: App, mounts: readonly string[], flows: Flows, options: FlowRoutesOptions): void {
  const { log } = options;
  const routes = authServiceRoutes.flows;

  serveAt(app, mounts, routes.authenticate, async ({ caller, body, context }) =>
    context.json(await flows.authenticate(caller, body, baseUrlOf(context, options))),
  );

  serveAt(app, mounts, routes.waitForAuthentication, ({ caller, params, query, context }) => {
    const abort = clientAbortOf(context);
    // After the caller's access has ended, the response must not contain a token.
    const ended = unlessAborted(abort.signal, flows.wait(caller, params.auth_id, query.timeout, abort.signal));
    const text = ended.then((result) => JSON.stringify(result));
    return keepAliveResponse(text, {}, abort, (error) =>
      log.error({ error }, "failed to wait for the result of an OAuth flow"),
    );
  });

  serveAt(app, mounts, routes.discoverMcpProvider, async ({ caller, body, context }) =>
    context.json(await flows.discover(caller, body, baseUrlOf(context, options))),
  );

  serveAt(app, mounts, routes.oauthCallback, ({ params, query }) =>
    answerCallback(flows, { ...params, ...query }, "../done"),
  );

  serveAt(app, mounts, routes.postOauthCallback, async ({ caller, params, body, context }) => {
    const result = await flows.handleCallback({ ...params, ...body }, caller);
    if (result.status === "failed") throw new ApiError("flow_failed", { ...params, ...result });
    return context.json({ status: result.status, ...params });
  });

  serveAt(app, mounts, routes.oauthSetup, ({ params, query: { setup_action, ...query } }) => {
    // Only the permissions of the app installation have changed. There is no code to exchange.
    if (setup_action === "update") return redirectToDonePage("../done", "connected", params.provider_id);
    return answerCallback(flows, { ...params, ...query }, "../done");
  });

  // The callback path of LangSmith, which may already be registered with providers.
  const compatibleRoute = { ...routes.oauthCallback, path: "/host-oauth-callback/{provider_id}" };
  serveAt(app, mounts, compatibleRoute, ({ params, query }) =>
    answerCallback(flows, { ...params, ...query }, "../v2/auth/done"),
  );

  for (const mount of mounts)
    app.get(`${mount}/v2/auth/done`, ({ req }) => donePage(req.query("status"), req.query("provider")));
}

async function answerCallback(flows: Flows, callback: CallbackParameters, done: string): Promise<Response> {
  try {
    const { status } = await flows.handleCallback(callback);
    return redirectToDonePage(done, status, callback.provider_id);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    // The message contains nothing from the request.
    return page(error.status, PAGES.failed[0], error.message);
  }
}

/**
 * The public URL of this server. It is derived from the request only on a loopback address, where the host name was validated
 * (guards.ts). Otherwise a client could choose the server to which users are redirected.
 */
function baseUrlOf({ req }: Context, { public_url, allowed_hosts, prefix }: FlowRoutesOptions): string | undefined {
  if (public_url !== undefined) return public_url;
  return allowed_hosts === undefined ? undefined : requestOrigin(req) + prefix;
}

const PAGES = {
  connected: ["Connected", "You can close this window."],
  failed: ["Not connected", "The authorization was not completed. Close this window and start again."],
} as const satisfies Record<string, readonly [title: string, text: string]>;

/**
 * The redirect removes the authorization code from the address bar.
 *
 * @param done URL of {@link donePage} relative to the request path, because a proxy may use another path prefix
 */
const redirectToDonePage = (done: string, status: "connected" | "failed", provider_id: string): Response =>
  new Response(null, {
    status: 302,
    headers: { location: `${done}?${new URLSearchParams({ status, provider: provider_id })}`, ...PRIVATE_HEADERS },
  });

/** The query of the page is untrusted, so a provider ID is shown only if it matches this pattern. */
const PROVIDER_ID = /^[\w.-]{1,64}$/;

function donePage(status: string | undefined, provider: string | undefined): Response {
  const isKnown = status === "connected" || status === "failed";
  const [title, text] = PAGES[isKnown ? status : "failed"];
  return page(200, provider && PROVIDER_ID.test(provider) ? `${title}: ${provider}` : title, text);
}

/** Renders a page without scripts or external resources. Requests from the page send no referrer. */
function page(status: number, title: string, text: string): Response {
  const content = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { display: grid; place-content: center; min-height: 90vh; margin: 0 1rem; text-align: center; }
  h1 { font-size: 1.25rem; margin: 0; }
  p { margin: .25rem 0 0; max-width: 32rem; }
</style>
<main><h1>${title}</h1><p>${text}</p></main>
</html>
`;
  return new Response(String(content), {
    status,
    headers: { "content-type": "text/html; charset=utf-8", ...PRIVATE_HEADERS },
  });
}

/** Headers of responses to URLs that contain an authorization code, and of the pages that follow. */
const PRIVATE_HEADERS = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
  "x-content-type-options": "nosniff",
};
