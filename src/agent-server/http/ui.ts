import type { Context } from "hono";
import { html } from "hono/html";
import { ApiError } from "../../platform/errors.ts";
import { type BaseUrlOptions, requestOrigin } from "../../platform/http/base-url.ts";
import { type App, type Env, serve } from "../../platform/http/route.ts";
import { uiRoutes } from "../contract/ui.ts";
import type { UiBundles, UiFile } from "../ui/ui-bundles.ts";

export interface UiRoutesOptions extends BaseUrlOptions {
  ui_bundles: Pick<UiBundles, "files">;
  /** Set in instances of deployments, to which the router sends the address of the deployment in headers. */
  rollout: number | undefined;
}

export function serveUi(app: App, options: UiRoutesOptions): void {
  const filesOf = async (namespace: string): Promise<readonly UiFile[]> => {
    const files = await options.ui_bundles.files(namespace).catch((error) => {
      throw new ApiError("ui_failed", { reason: (error as Error).message });
    });
    if (!files) throw new ApiError("ui_not_found", { namespace });
    return files;
  };

  serve(app, uiRoutes.loadComponent, async ({ params: { namespace }, body, context }) => {
    const files = await filesOf(namespace);
    const base = `${serverUrl(context, options)}/ui/${encodeURIComponent(namespace)}`;
    const links = files
      .filter(({ name }) => name.endsWith(".css"))
      .map(({ name }) => html`<link rel="stylesheet" href="${base}/${encodeURIComponent(name)}" />`);
    // The bundler's output defines this global variable.
    const render = `__LGUI_${namespace.replaceAll(/[^a-zA-Z0-9]/g, "_")}.render(${JSON.stringify(body.name)}, "{{shadowRootId}}")`;
    const scripts = files
      .filter(({ name }) => name.endsWith(".js"))
      .map(({ name }) => html`<script src="${base}/${encodeURIComponent(name)}" onload="${render}"></script>`);
    return context.html([...links, ...scripts].join("\n"));
  });

  serve(app, uiRoutes.getUiFile, async ({ params: { namespace, file }, context }) => {
    const found = (await filesOf(namespace)).find(({ name }) => name === file);
    if (!found) throw new ApiError("ui_file_not_found", { file, namespace });
    return context.body(found.bytes, 200, {
      "content-type": found.type,
      "cache-control": "no-cache",
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "cross-origin",
    });
  });
}

/** Returns this server's URL, without a scheme unless the public URL is set: a proxy may accept only https and forward http. */
function serverUrl({ req }: Context<Env>, { public_url, prefix, rollout }: UiRoutesOptions): string {
  const host = rollout === undefined ? undefined : req.header("x-forwarded-host");
  if (host !== undefined) return `//${host}${req.header("x-forwarded-prefix") ?? ""}`;
  return public_url ?? requestOrigin(req).replace(/^\w+:/, "") + prefix;
}
