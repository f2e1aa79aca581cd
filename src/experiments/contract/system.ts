import { createRoute, z } from "@hono/zod-openapi";
import { jsonObject, jsonResponse } from "../../platform/contract/fields.ts";

/** What the official clients of the experiments API probe. */
const ExperimentsInfo = z
  .object({
    version: z.string(),
    threadmill_version: z.string(),
    instance_flags: jsonObject,
    batch_ingest_config: jsonObject,
    license_expiration_time: z.null(),
    customer_info: z.null(),
  })
  .openapi("InfoGetResponse");
export type ExperimentsInfo = z.output<typeof ExperimentsInfo>;

export const experimentsInfo = createRoute({
  method: "get",
  path: "/info",
  operationId: "experiments_info",
  summary: "Version and features",
  tags: ["System"],
  responses: { 200: jsonResponse(ExperimentsInfo, "Version and features.") },
});
