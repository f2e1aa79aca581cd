import { createRoute, z } from "@hono/zod-openapi";
import { jsonResponse } from "../../platform/contract/fields.ts";
import { Dataset } from "./datasets.ts";
import { Example } from "./examples.ts";
import { errors, looseUuid, paging, uuids } from "./fields.ts";
import { Session } from "./sessions.ts";

const tags = ["Datasets"];

const shareParams = z.object({ share_token: looseUuid });

export const readSharedDataset = createRoute({
  method: "get",
  path: "/public/{share_token}/datasets",
  operationId: "read_shared_dataset",
  summary: "A shared dataset, for whoever has its token",
  tags,
  security: [],
  request: { params: shareParams },
  responses: { 200: jsonResponse(Dataset, "The dataset."), ...errors(404) },
});

export const listSharedExamples = createRoute({
  method: "get",
  path: "/public/{share_token}/examples",
  operationId: "list_shared_examples",
  summary: "Its examples",
  tags,
  security: [],
  request: { params: shareParams, query: z.object({ id: uuids.optional(), ...paging }) },
  responses: { 200: jsonResponse(z.array(Example), "A page."), ...errors(404) },
});

const SharedSessionQuery = z.object({
  id: uuids.optional(),
  name: z.string().optional(),
  name_contains: z.string().optional(),
  ...paging,
});
export type SharedSessionQuery = z.output<typeof SharedSessionQuery>;

export const listSharedSessions = createRoute({
  method: "get",
  path: "/public/{share_token}/datasets/sessions",
  operationId: "list_shared_sessions",
  summary: "Its experiments, with their statistics, when they are shared with it",
  tags,
  security: [],
  request: { params: shareParams, query: SharedSessionQuery },
  responses: { 200: jsonResponse(z.array(Session), "A page."), ...errors(404) },
});
