import { z } from "@hono/zod-openapi";
import { nullable } from "../../platform/contract/fields.ts";
import { operation } from "../../platform/contract/operation.ts";

/** Provider ID in a request. Any string is valid. An unknown ID causes a 404 only if the operation needs the provider. */
export const providerId = z.string().openapi({ description: "`provider_id` of a provider." });

/** Path or query parameters with a provider ID. */
export const providerParams = z.object({ provider_id: providerId });

/** Agent ID. Opaque: the ID of an assistant, or any other identifier that the client chooses. */
export const agentId = z.string().max(500);

/** A secret. The limit allows signed tokens with many claims. */
export const secretText = z.string().max(100_000);

/** Scopes as the provider defines them. */
export const scopes = z.array(z.string().max(1000)).max(500);

export const label = z.string().max(500);

/** A field that may be null or missing. */
export const nullish = <T extends z.ZodType>(schema: T) => nullable(schema).optional();

type Tag = "Auth Service (v2)" | "Agent Connections (v2)";

/** Returns a function that declares an operation with the given tag in the OpenAPI document. */
export const operationsOf =
  (tag: Tag) =>
  <M extends "get" | "post" | "patch" | "delete", P extends string>(name: string, method: M, path: P) => ({
    ...operation(name, method, path),
    tags: [tag],
  });
