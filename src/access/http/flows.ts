import type { Context } from "hono";
import { ApiError } from "../../platform/errors.ts";
import { originAskedFor } from "../../platform/http/base-url.ts";
import { goneWith } from "../../platform/http/client-abort.ts";
import { byPart } from "../../platform/http/fastapi-errors.ts";
import { lastWins } from "../../platform/http/reading.ts";
import { type App, answer } from "../../platform/http/route.ts";
import { serveAt } from "../../platform/http/serve-at.ts";
import { waitingResponse } from "../../platform/http/waiting.ts";
import type { Log } from "../../platform/lib/log.ts";
import { unlessAborted } from "../../platform/lib/unless-aborted.ts";
import { authServiceRoutes } from "../contract/routes.ts";
import type { Returned } from "../oauth/flow-return.ts";
import type { Flows } from "../oauth/flows.ts";
import { donePage, refusedPage, sendOn } from "./flow-page.ts";

export interface FlowRoutesOptions {
  /** Our own address, as users' browsers reach it. */
  public_url: string | undefined;
  /** Set on a loopback address: the names, besides loopback's own, that it is called by. */
  allowed_hosts: readonly string[] | undefined;
  /** Path prefix of all routes; empty for none. */
  prefix: string;
  log: Log;
}

export function serveFlows(app: App, mounts: readonly string[], flows: Flows, options: FlowRoutesOptions): void {
  const { log } = options;
  const routes = authServiceRoutes.flows;

  serveAt(app, mounts, routes.authenticate, async ({ caller, body, context }) =>
    context.json(await flows.authenticate(caller, body, baseUrlOf(context, options))),
  );

  serveAt(app, mounts, routes.waitForAuthentication, ({ caller, params, query, context }) => {
    const gone = goneWith(context);
    // Who is let in no longer gets no token that has just come.
    const ended = unlessAborted(gone.signal, flows.wait(caller, params.auth_id, query.timeout, gone.signal));
    const text = ended.then((wire) => JSON.stringify(wire));
    return waitingResponse(text, {}, gone, (error) => log.error({ error }, "a wait for a flow failed"));
  });

  serveAt(app, mounts, routes.discoverMcpProvider, async ({ caller, body, context }) =>
    context.json(await flows.discover(caller, body, baseUrlOf(context, options))),
  );

  serveAt(app, mounts, routes.oauthCallback, ({ params, query }) =>
    takeBack(flows, { ...params, ...query }, "../done"),
  );

  serveAt(app, mounts, routes.postOauthCallback, async ({ caller, params, body, context }) => {
    const end = await flows.return({ ...params, ...body }, caller);
    if (end.status === "failed") throw new ApiError("flow_failed", { ...params, ...end });
    return context.json({ status: end.status, ...params });
  });

  serveAt(app, mounts, routes.oauthSetup, ({ params, query: { setup_action, ...query } }) => {
    // Somebody has changed what an app may see: nothing was granted anew.
    if (setup_action === "update") return sendOn("../done", "connected", params.provider_id);
    return takeBack(flows, { ...params, ...query }, "../done");
  });

  for (const mount of mounts) {
    app.get(`${mount}/v2/auth/done`, ({ req }) => donePage(req.query("status"), req.query("provider")));
    // The web app of the original is called back here: the address that may be registered at a provider already.
    const bridge = { ...routes.oauthCallback, path: `${mount}/host-oauth-callback/{provider_id}` };
    const takeBackBelow = "../v2/auth/done";
    answer(
      app,
      bridge,
      ({ params, query }) => takeBack(flows, { ...params, ...query }, takeBackBelow),
      byPart,
      lastWins,
    );
  }
}

/** Answers a browser: with a page, whatever happened, and never where its address can be passed on. */
async function takeBack(flows: Flows, returned: Returned, done: string): Promise<Response> {
  try {
    const { status } = await flows.return(returned);
    return sendOn(done, status, returned.provider_id);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    return refusedPage(error.status, error.message);
  }
}

/**
 * The address that users' browsers know. A request can only say it on a loopback address, where it has been held to known names
 * (guards.ts): elsewhere anybody could have users sent back to another server with it.
 */
function baseUrlOf({ req }: Context, { public_url, allowed_hosts, prefix }: FlowRoutesOptions): string | undefined {
  if (public_url !== undefined) return public_url;
  return allowed_hosts === undefined ? undefined : originAskedFor(req) + prefix;
}
