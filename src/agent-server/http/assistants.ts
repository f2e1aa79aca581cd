import { ApiError } from "../../platform/errors.ts";
import { type App, jsonText, serve } from "../../platform/http/route.ts";
import type { Assistants } from "../assistants/assistants.ts";
import { agentServerRoutes } from "../contract/routes.ts";
import { pageHeaders, selectFields } from "./select.ts";

export function serveAssistants(app: App, assistants: Assistants): void {
  const routes = agentServerRoutes.assistants;

  serve(app, routes.createAssistant, async ({ caller, body, context }) =>
    context.json(await assistants.create(caller, body)),
  );

  serve(app, routes.searchAssistants, async ({ caller, body, context }) => {
    const found = await assistants.search(caller, body);
    return context.json(selectFields(found, body.select), 200, pageHeaders(body, found.length));
  });

  serve(app, routes.countAssistants, async ({ caller, body, context }) =>
    context.json(await assistants.count(caller, body)),
  );

  serve(app, routes.getAssistant, async ({ caller, params, context }) =>
    context.json(await assistants.get(caller, params.assistant_id)),
  );

  serve(app, routes.patchAssistant, async ({ caller, params, body, context }) =>
    context.json(await assistants.patch(caller, params.assistant_id, body)),
  );

  serve(app, routes.deleteAssistant, async ({ caller, params, query, context }) => {
    await assistants.delete(caller, params.assistant_id, query);
    return context.body(null, 204);
  });

  serve(app, routes.getAssistantGraph, async ({ caller, params, query }) =>
    jsonText(await assistants.drawing(caller, params.assistant_id, query.xray)),
  );

  serve(app, routes.getAssistantSchemas, async ({ caller, params, context }) =>
    context.json(await assistants.schemas(caller, params.assistant_id)),
  );

  serve(app, routes.getAssistantSubgraphs, async ({ caller, params, query, context }) =>
    context.json(await assistants.subgraphs(caller, params.assistant_id, undefined, query.recurse)),
  );

  serve(app, routes.getAssistantSubgraphsAt, async ({ caller, params, query, context }) =>
    context.json(await assistants.subgraphs(caller, params.assistant_id, params.namespace, query.recurse)),
  );

  serve(app, routes.listAssistantVersions, async ({ caller, params, body, context }) =>
    context.json(await assistants.versions(caller, params.assistant_id, body)),
  );

  serve(app, routes.setLatestAssistantVersion, async ({ caller, params, query, body, context }) => {
    const version = body.version ?? query.version;
    if (version === undefined)
      throw new ApiError("invalid_request", { reason: "body.version: the version number is missing" });
    return context.json(await assistants.setLatest(caller, params.assistant_id, version));
  });
}
