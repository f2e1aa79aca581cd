import { z } from "@hono/zod-openapi";
import { nullable } from "../../platform/contract/fields.ts";

/** A name of a provider in a path or a query. Any text: one that no provider has is not found. */
export const providerId = z.string().openapi({ description: "The `provider_id` of a provider." });

export const providerParams = z.object({ provider_id: providerId });

/** The agent that a token is for. Opaque: the assistant's id, or whatever the caller's agents are called. */
export const agentId = z.string().max(500);

/** A secret. Long enough for the largest tokens that are in use, signed ones with many claims. */
export const secretText = z.string().max(100_000);

/** What a token may be used for, in the words of its provider. */
export const scopes = z.array(z.string().max(1000)).max(500);

export const label = z.string().max(500);

/** A field of which null says as much as its absence. */
export const perhaps = <T extends z.ZodType>(schema: T) => nullable(schema).optional();
