import { createRoute, z } from "@hono/zod-openapi";
import { jsonObject, jsonResponse } from "../../platform/contract/fields.ts";

/** The official clients request this route to detect the features of a server. */
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

/**
 * The features that the official clients check. With `sdb_query_enabled`, they would use all of version 2 of the API; this server
 * supports only a part of it.
 */
export const EXPERIMENTS_INFO = {
  instance_flags: {
    dataset_examples_multipart_enabled: true,
    examples_multipart_enabled: true,
    sdb_query_enabled: false,
    gzip_body_enabled: true,
    zstd_compression_enabled: true,
  },
  // All fields are required: a background thread of the Python client fails with a KeyError if one is missing.
  batch_ingest_config: {
    use_multipart_endpoint: true,
    scale_up_qsize_trigger: 1000,
    scale_up_nthreads_limit: 16,
    scale_down_nempty_trigger: 4,
    size_limit: 100,
    size_limit_bytes: 20_971_520,
  },
  license_expiration_time: null,
  customer_info: null,
} as const;

export const systemRoutes = {
  experimentsInfo: createRoute({
    method: "get",
    path: "/info",
    operationId: "experiments_info",
    summary: "Get the server's version and features",
    responses: { 200: jsonResponse(ExperimentsInfo, "Version and features.") },
  }),
};
