import { createRoute, z } from "@hono/zod-openapi";
import { jsonResponse } from "../../../platform/contract/fields.ts";
import { idAndName, MAX_PAGE_SIZE, paging, uuidOrHex, uuids } from "../fields.ts";
import { errors } from "../responses.ts";
import { Session } from "../sessions.ts";
import { Dataset } from "./datasets.ts";
import { Example } from "./examples.ts";

const shareParams = z.object({ share_token: uuidOrHex });

const SharedSessionQuery = z.object({ ...idAndName, ...paging });
export type SharedSessionQuery = z.output<typeof SharedSessionQuery>;

/** To clone a dataset, the JavaScript client reads only the first page and sends no limit, so the default is the maximum. */
const SharedExampleQuery = z.object({
  id: uuids.optional(),
  ...paging,
  limit: paging.limit.removeDefault().default(MAX_PAGE_SIZE),
});

export const sharedDatasetRoutes = {
  readSharedDataset: createRoute({
    method: "get",
    path: "/public/{share_token}/datasets",
    operationId: "read_shared_dataset",
    summary: "Get a shared dataset by its share token",
    security: [],
    request: { params: shareParams },
    responses: { 200: jsonResponse(Dataset, "The dataset."), ...errors(404) },
  }),

  listSharedExamples: createRoute({
    method: "get",
    path: "/public/{share_token}/examples",
    operationId: "list_shared_examples",
    summary: "List the examples of a shared dataset",
    security: [],
    request: { params: shareParams, query: SharedExampleQuery },
    responses: { 200: jsonResponse(z.array(Example), "A page of examples."), ...errors(404) },
  }),

  listSharedSessions: createRoute({
    method: "get",
    path: "/public/{share_token}/datasets/sessions",
    operationId: "list_shared_sessions",
    summary: "List a shared dataset's experiments. The list is empty if the experiments are not shared",
    security: [],
    request: { params: shareParams, query: SharedSessionQuery },
    responses: { 200: jsonResponse(z.array(Session), "A page of experiments with their statistics."), ...errors(404) },
  }),
};
