import { z } from "@hono/zod-openapi";
import { nullable } from "../../platform/contract/fields.ts";

/** Provider id in a path or a query. Any string is valid; an unknown one is not found. */
export const providerId = z.string().openapi({ description: "`provider_id` of a provider." });

export const providerParams = z.object({ provider_id: providerId });

/** Agent id. Opaque: the id of an assistant, or any other identifier of the client. */
export const agentId = z.string().max(500);

/** A secret. The limit allows signed tokens with many claims. */
export const secretText = z.string().max(100_000);

/** Scopes as the provider defines them. */
export const scopes = z.array(z.string().max(1000)).max(500);

export const label = z.string().max(500);

/** A field that may be null or missing. */
export const nullish = <T extends z.ZodType>(schema: T) => nullable(schema).optional();
