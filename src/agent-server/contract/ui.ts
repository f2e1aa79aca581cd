import { z } from "@hono/zod-openapi";
import { errorResponses, jsonBody } from "../../platform/contract/fields.ts";
import { routeGroup } from "../../platform/contract/operation.ts";

const namespace = z
  .string()
  .openapi({ description: "Key in the `ui` object of langgraph.json, usually the name of a graph." });

const MAX_NAME = 200;

/** React components of the project, for `LoadExternalComponent` of `@langchain/langgraph-sdk/react-ui`. */
export const uiRoutes = routeGroup("UI", {
  loadComponent: {
    method: "post",
    path: "/ui/{namespace}",
    summary: "Get the HTML that loads a component",
    description:
      "The HTML contains the placeholder `{{shadowRootId}}`, which the client must replace with the ID of the shadow root.",
    request: {
      params: z.object({ namespace }),
      body: jsonBody(
        z.object({ name: z.string().min(1).max(MAX_NAME).openapi({ description: "Name of the component." }) }),
      ),
    },
    responses: {
      200: {
        description: "HTML elements that load the files of the component.",
        content: { "text/html": { schema: z.string() } },
      },
      ...errorResponses(404, 422, 502),
    },
  },

  /** Needs no authentication, because browsers load scripts without headers. */
  getUiFile: {
    method: "get",
    path: "/ui/{namespace}/{file}",
    summary: "Get a script or style sheet of the UI components",
    request: { params: z.object({ namespace, file: z.string() }) },
    responses: { 200: { description: "The file." }, ...errorResponses(404, 502) },
  },
});
