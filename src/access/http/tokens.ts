import type { App } from "../../platform/http/route.ts";
import { serveAt } from "../../platform/http/serve-at.ts";
import { authServiceRoutes } from "../contract/routes.ts";
import type { Tokens } from "../tokens/tokens.ts";

export function serveTokens(app: App, mounts: readonly string[], tokens: Tokens): void {
  const routes = authServiceRoutes.tokens;

  serveAt(app, mounts, routes.listTokens, async ({ caller, query, context }) =>
    context.json(await tokens.list(caller, query.provider_id)),
  );

  serveAt(app, mounts, routes.deleteTokens, async ({ caller, query, context }) =>
    context.json(await tokens.deleteAll(caller, query.provider_id)),
  );

  serveAt(app, mounts, routes.checkTokenExists, async ({ caller, query: { provider_id }, context }) =>
    context.json({ has_token: (await tokens.exist(caller, [provider_id]))[provider_id] }),
  );

  serveAt(app, mounts, routes.checkTokensExist, async ({ caller, body, context }) =>
    context.json({ has_token: await tokens.exist(caller, body.provider_ids) }),
  );

  serveAt(app, mounts, routes.importToken, async ({ caller, body, context }) =>
    context.json(await tokens.import(caller, body)),
  );

  serveAt(app, mounts, routes.updateToken, async ({ caller, params, body, context }) =>
    context.json(await tokens.update(caller, params.token_id, body)),
  );

  serveAt(app, mounts, routes.deleteToken, async ({ caller, params, context }) => {
    await tokens.delete(caller, params.token_id);
    return context.body(null, 204);
  });

  serveAt(app, mounts, routes.listTokenEvents, async ({ caller, query, context }) =>
    context.json(await tokens.events(caller, query.provider_id, query.limit)),
  );
}
