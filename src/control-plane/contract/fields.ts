import { z } from "@hono/zod-openapi";
import { laxInt, laxTime, laxUuid } from "../../platform/contract/lax-fields.ts";

/** Path of everything that belongs to one deployment. */
export const deploymentParams = z.object({ deployment_id: laxUuid });

export const revisionParams = deploymentParams.extend({ revision_id: laxUuid });

/** @param most the largest page; `usual` counts when none is asked for */
export const pageSize = (most: number, usual: number) =>
  laxInt({ ge: 1, le: most }).default(usual).openapi({ default: usual });

export const pageOffset = laxInt({ ge: 0 }).default(0).openapi({ default: 0 });

/** Texts with commas between them; empty ones do not count. */
export const commaSeparated = z
  .string()
  .transform((text) =>
    text
      .split(",")
      .map((item) => item.trim())
      .filter(Boolean),
  )
  .openapi({ type: "string", description: "Several, with commas between them." });

/** A moment, in milliseconds since the epoch. */
export const moment = laxTime;
