import type { OpenAPIHono, RouteConfig, z } from "@hono/zod-openapi";
import type { Context } from "hono";
import type { Caller } from "../agents/context.ts";
import { ApiError } from "../errors.ts";
import { JsonError, parseUntrusted } from "../lib/json.ts";

/** What the middleware leaves for the handlers. */
export interface Env {
  Variables: { caller: Caller };
}

export type App = OpenAPIHono<Env>;

type Output<S> = S extends z.ZodType ? z.output<S> : Record<string, never>;
type RequestOf<R extends RouteConfig> = NonNullable<R["request"]>;
type BodyOf<R extends RouteConfig> =
  RequestOf<R> extends { body: { content: { "application/json": { schema: infer S } } } } ? Output<S> : undefined;

/** A request whose parts have been checked against its route. */
export interface Checked<R extends RouteConfig> {
  params: RequestOf<R> extends { params: infer S } ? Output<S> : Record<string, never>;
  query: RequestOf<R> extends { query: infer S } ? Output<S> : Record<string, never>;
  headers: RequestOf<R> extends { headers: infer S } ? Output<S> : Record<string, never>;
  body: BodyOf<R>;
  caller: Caller;
  /** Aborted when the client is gone. */
  signal: AbortSignal;
  context: Context<Env>;
}

export type Handler<R extends RouteConfig> = (request: Checked<R>) => Promise<Response> | Response;

/** Serves a route of the contract: checks the request against it, then calls the handler; adds it to the API's document. */
export function serve<R extends RouteConfig>(app: App, route: R, handler: Handler<R>): void {
  app.openAPIRegistry.registerPath(route);
  const { params, query, headers, body } = route.request ?? {};
  const bodySchema = (body?.content["application/json"] as { schema?: z.ZodType } | undefined)?.schema;
  // Hono writes :name where OpenAPI writes {name}.
  app.on(route.method.toUpperCase(), route.path.replaceAll(/\{(\w+)\}/g, ":$1"), async (context) => {
    const checked = {
      params: check(params as z.ZodType | undefined, pathOf(context), "path"),
      query: check(query as z.ZodType | undefined, queryOf(context), "query"),
      headers: check(headers as z.ZodType | undefined, headersOf(context, headers), "header"),
      body: bodySchema ? check(bodySchema, await bodyOf(context), "body") : undefined,
      caller: context.get("caller"),
      signal: context.req.raw.signal,
      context,
    };
    return handler(checked as unknown as Checked<R>);
  });
}

/**
 * One value as itself, repeated ones as a list. Clients send an empty value for "not set", and their own query
 * again when they reconnect to a Location that has it: neither counts.
 */
function queryOf(context: Context): Record<string, string | string[]> {
  const given = Object.entries(context.req.queries()).map(([name, values]) => [
    name,
    [...new Set(values.filter((value) => value !== "").map(withoutNul))],
  ]) as [string, string[]][];
  const entries = given.filter(([, values]) => values.length > 0);
  return Object.fromEntries(
    entries.map(([name, values]) => [name, values.length === 1 ? (values[0] as string) : values]),
  );
}

/** No database can hold a NUL in a text. */
const withoutNul = (text: string): string => text.replaceAll("\0", "\ufffd");

const pathOf = (context: Context): Record<string, string> =>
  Object.fromEntries(Object.entries(context.req.param()).map(([name, value]) => [name, withoutNul(String(value))]));

/** The declared headers under their declared spelling. */
function headersOf(context: Context, schema: unknown): Record<string, string | undefined> {
  const names = Object.keys((schema as { shape?: object } | undefined)?.shape ?? {});
  return Object.fromEntries(names.map((name) => [name, context.req.header(name)]));
}

/** The JSON body; a request without one reads as an empty object. */
async function bodyOf(context: Context): Promise<unknown> {
  const text = await context.req.text();
  if (text.trim() === "") return {};
  try {
    return parseUntrusted(text);
  } catch (error) {
    if (error instanceof JsonError) throw new ApiError("invalid_request", { reason: `The body ${error.message}.` });
    throw error;
  }
}

function check(schema: z.ZodType | undefined, value: unknown, part: string): unknown {
  if (!schema) return {};
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const reasons = result.error.issues
    .slice(0, 3)
    .map((issue) => `${[part, ...issue.path].join(".")}: ${issue.message}`);
  throw new ApiError("invalid_request", { reason: reasons.join("; ") });
}

/** A response whose body is JSON text already. */
export const jsonText = (text: string, headers: Record<string, string> = {}): Response =>
  new Response(text, { headers: { "content-type": "application/json", ...headers } });
