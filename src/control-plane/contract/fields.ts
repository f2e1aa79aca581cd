import { z } from "@hono/zod-openapi";
import { laxInt, laxUuid } from "../../platform/contract/lax-fields.ts";

export const deploymentParams = z.object({ deployment_id: laxUuid });

export const revisionParams = deploymentParams.extend({ revision_id: laxUuid });

export const pageSize = (max: number, default_size: number) =>
  laxInt({ ge: 1, le: max }).default(default_size).openapi({ default: default_size });

export const pageOffset = laxInt({ ge: 0 }).default(0).openapi({ default: 0 });

/** Comma-separated values; empty values are ignored. */
export const commaSeparated = z
  .string()
  .transform((text) =>
    text
      .split(",")
      .map((item) => item.trim())
      .filter(Boolean),
  )
  .openapi({ type: "string", description: "Comma-separated values." });
